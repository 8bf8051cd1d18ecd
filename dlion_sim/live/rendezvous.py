"""How a node and its peers come to be connected."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dlion_sim.live.frames import Kind, Payload, PeerError, Seal
from dlion_sim.live.handshake import LARGEST_PAYLOAD, Acceptor, Connector, Credentials, Ends
from dlion_sim.live.sockets import Address, FrameReader, connect, prepare, send_frame
from dlion_sim.live.timeouts import Timeouts
from dlion_sim.protocol.messages import Channel

_LOG = logging.getLogger(__name__)
_RETRY_SECONDS = 0.2
_STRANGERS = 32
"""Connections whose other end is not known yet, at most: more wait in the kernel."""
_REFUSALS_LOGGED = 10


class Connection(NamedTuple):
    """A connection whose other end is known, and the seal of its frames."""

    socket: socket.socket
    seal: Seal


Lane = tuple[int, Channel]
"""A peer, and which of its connections."""


@dataclass(frozen=True)
class Connections:
    """A node's connections by lane: those that it sends on, and those that it receives from."""

    outgoing: dict[Lane, Connection] = field(default_factory=dict)
    incoming: dict[Lane, Connection] = field(default_factory=dict)


class Rendezvous:
    """Connects node `me` with its peers, in both directions; `addresses` has one for each participant."""

    def __init__(
        self,
        me: int,
        peers: Sequence[int],
        addresses: Sequence[Address],
        listener: socket.socket,
        credentials: Credentials,
        timeouts: Timeouts,
    ) -> None:
        self._me = me
        self._peers = peers
        self._addresses = addresses
        self._listener = listener
        self._credentials = credentials
        self._timeouts = timeouts
        self._connections = Connections()
        self._all_here = asyncio.Event()
        self._trouble: dict[int, str] = {}
        self.refused = 0
        """Connections of strangers that were turned away."""

    async def meet(self) -> Connections:
        """All connections, however long that takes; nobody else can connect afterwards."""
        ends = [Ends(self._me, peer, channel) for peer in self._peers for channel in Channel]
        try:
            async with asyncio.TaskGroup() as tasks:
                listening = tasks.create_task(self._listen())
                await asyncio.gather(*map(self._connect, ends))
                if self._peers:
                    await self._all_here.wait()
                listening.cancel()
        except BaseException:
            for connection in (*self._connections.outgoing.values(), *self._connections.incoming.values()):
                connection.socket.close()
            raise
        return self._connections

    def missing(self) -> list[str]:
        """What keeps `meet` waiting, in words."""
        words = []
        for peer in self._peers:
            if not _complete(self._connections.outgoing, peer):
                reason = self._trouble.get(peer, "no answer")
                words.append(f"node {peer} at {self._addresses[peer]} was not reached: {reason}")
            elif not _complete(self._connections.incoming, peer):
                words.append(f"node {peer} has not connected")
        return words

    async def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        slots = asyncio.Semaphore(_STRANGERS)
        self._listener.setblocking(False)
        with self._listener:
            async with asyncio.TaskGroup() as strangers:
                while True:
                    await slots.acquire()
                    try:
                        connection, _ = await loop.sock_accept(self._listener)
                    except OSError as error:
                        _LOG.warning("cannot accept connections: %s", error.strerror)
                        slots.release()
                        await asyncio.sleep(_RETRY_SECONDS)
                        continue
                    stranger = strangers.create_task(self._receive(connection))
                    stranger.add_done_callback(lambda _: slots.release())

    async def _receive(self, connection: socket.socket) -> None:
        """Find out who has connected."""
        try:
            async with asyncio.timeout(self._timeouts.handshake):
                await self._admit(connection)
        except (PeerError, OSError) as error:
            connection.close()
            self._refuse(str(error) or "took too long to prove who it is")
        except BaseException:
            connection.close()
            raise

    async def _admit(self, connection: socket.socket) -> None:
        prepare(connection)
        acceptor, seal = Acceptor(self._credentials, self._me), Seal()
        await send_frame(connection, Kind.CHALLENGE, Payload((acceptor.challenge,)), seal)
        admission = acceptor.admit(await _expect(_first_frames(connection), Kind.PROOF))
        lane = admission.ends.sender, admission.ends.channel
        incoming = self._connections.incoming
        if lane[0] not in self._peers or lane in incoming:
            raise PeerError(f"is node {lane[0]}, which has nothing to say here, or has connected already")
        await send_frame(connection, Kind.WELCOME, Payload((admission.welcome,)), seal)
        incoming[lane] = Connection(connection, admission.seal)
        if all(_complete(incoming, peer) for peer in self._peers):
            self._all_here.set()

    def _refuse(self, reason: str) -> None:
        self.refused += 1
        if self.refused <= _REFUSALS_LOGGED:
            _LOG.warning("node %d refused a connection that %s", self._me, reason)

    async def _connect(self, ends: Ends) -> None:
        """Connect to a peer, which may not be there yet."""
        while True:
            try:
                self._connections.outgoing[ends.receiver, ends.channel] = await self._introduced(ends)
                return
            except PeerError as error:
                self._trouble[ends.receiver] = f"it {error}; does it have the same secret, scenario, version and code?"
            except OSError as error:
                self._trouble[ends.receiver] = error.strerror or str(error)
            await asyncio.sleep(_RETRY_SECONDS)

    async def _introduced(self, ends: Ends) -> Connection:
        connection = await connect(self._addresses[ends.receiver])
        try:
            connector, frames = Connector(self._credentials, ends), _first_frames(connection)
            proof = connector.proof(await _expect(frames, Kind.CHALLENGE))
            await send_frame(connection, Kind.PROOF, Payload((proof,)), Seal())
            return Connection(connection, connector.finish(await _expect(frames, Kind.WELCOME)))
        except BaseException:
            connection.close()
            raise


def _complete(connections: Mapping[Lane, Connection], peer: int) -> bool:
    return all((peer, channel) in connections for channel in Channel)


def _first_frames(connection: socket.socket) -> FrameReader:
    """The frames from somebody who is not known yet."""
    return FrameReader(connection, Seal(), limit=LARGEST_PAYLOAD)


async def _expect(frames: FrameReader, kind: Kind) -> bytes:
    """The payload of the next frame, which must be of that kind."""
    found, payload = await frames.read()
    if found is not kind:
        raise PeerError(f"sent a {found.name} out of place")
    return bytes(payload)
