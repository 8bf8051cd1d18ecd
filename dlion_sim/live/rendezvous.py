"""Connects a node with its peers, first and again after they have lost each other.

Each end connects to the other for what it has to send; `pair` decides which connections belong together.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from dlion_sim.live.connection import Address, Connection
from dlion_sim.live.frames import PeerError
from dlion_sim.live.handshake import Credentials, Ends, Standing
from dlion_sim.live.link_timing import least_round_trip
from dlion_sim.live.node_config import Timeouts
from dlion_sim.live.pair import Connections, Pair
from dlion_sim.protocol.messages import Channel

if TYPE_CHECKING:
    from dlion_sim.live.driver import Driver

_LOG = logging.getLogger(__name__)
_RETRY_SECONDS = 0.2
_PATIENCE = 4
"""Round trips to wait for an answer, if one was measured: requests that a broken link has dropped must not delay the
next attempt."""
_LONGEST_ROUND_TRIP = 1.0
"""Seconds; also where TCP has not measured it yet (RFC 6298)."""
_STRANGERS = 32
"""The most connections in a handshake: others wait in the kernel."""
_REFUSALS_LOGGED = 10
_BOTH_WAYS = (
    "all nodes need the same `addresses`, and connect both ways: forward a node's port there to where it listens "
    "(`listen`), or use a VPN"
)


class Rendezvous:
    """Connects node `me` with its peers, in both directions; `addresses` has one for each participant.

    A node that `joins` a run that is under way is let in by those who are; nobody else new is, once it has begun.
    """

    def __init__(
        self,
        me: int,
        peers: Sequence[int],
        addresses: Sequence[Address],
        listener: socket.socket,
        credentials: Credentials,
        timeouts: Timeouts,
        *,
        joins: bool = False,
    ) -> None:
        self._me = me
        self._addresses = addresses
        self._listener = listener
        self._credentials = credentials
        self._timeouts = timeouts
        process = Standing(Standing.fresh_process(), joins=joins)
        # Who joins has to decide without those whom it does not reach.
        patience = _LONGEST_ROUND_TRIP if joins else None
        self._pairs = {peer: Pair(peer, process, patience=patience) for peer in peers}
        self._host: Driver | None = None
        self._news = asyncio.Event()
        """Set when a peer is connected or was tried, or sends its clock."""
        self.began: float | None = None
        """When the run began, by this machine's `time.monotonic`; None until a peer tells."""
        self.refused = 0
        """The number of refused connections."""

    async def run(self) -> None:
        """Listen, and connect with all peers that are not connected, for ever."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._listen())
                for pair in self._pairs.values():
                    tasks.create_task(self._reach(pair))
        finally:
            for pair in self._pairs.values():
                if not pair.is_met:
                    pair.connections.close()

    async def meet(self, whom: Collection[int]) -> Mapping[int, Connections]:
        """The connections with these peers, once all of them are there, while `run` goes on."""
        while not all(self._pairs[peer].connections.is_complete for peer in whom):
            await self._more()
        for peer in whom:
            self._pairs[peer].is_met = True
        return {peer: self._pairs[peer].connections for peer in whom}

    async def beginning(self) -> float:
        """Wait until a peer tells when the run began, by this machine's `time.monotonic`."""
        while self.began is None:
            await self._more()
        return self.began

    def attend(self, host: Driver) -> None:
        """Report peers to `host` that connect from now on, or are connected and were not met."""
        self._host = host
        for pair in self._pairs.values():
            self._check(pair)

    def parted(self, peer: int) -> None:
        """The connections with a peer have ended, and are to be replaced."""
        self._pairs[peer].part()

    @property
    def untried(self) -> list[int]:
        """The peers of which the host does not know yet whether they are there."""
        return [peer for peer, pair in self._pairs.items() if not pair.is_tried]

    @property
    def is_refused(self) -> bool:
        """Whether a peer has refused this node, other than one that looks for the run itself."""
        return any(pair.is_refused and not pair.seeks for pair in self._pairs.values())

    async def all_tried(self) -> None:
        """Wait until the host knows of each peer whether it is there."""
        while self.untried:
            await self._more()

    def missing(self, whom: Collection[int]) -> list[str]:
        """Why `meet` or `all_tried` has not returned."""
        pairs = [self._pairs[peer] for peer in whom if not self._pairs[peer].connections.is_complete]
        words = [pair.what_is_missing(self._me, self._addresses) for pair in pairs]
        return [*words, _BOTH_WAYS] if any(pair.is_one_way for pair in pairs) else words

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

    async def _receive(self, connected: socket.socket) -> None:
        """Find out who has connected."""
        connection = Connection(connected, self._credentials.identity)
        try:
            async with asyncio.timeout(self._timeouts.handshake):
                await self._admit(connection)
        except (PeerError, OSError) as error:
            connection.close()
            self._refuse(str(error) or "took too long to prove who it is")
        except BaseException:
            connection.close()
            raise

    async def _admit(self, connection: Connection) -> None:
        ends, theirs = await connection.admit(self._credentials.run, self._me)
        peer, channel = ends.sender, ends.channel
        pair = self._pairs.get(peer)
        if pair is None:
            raise PeerError(f"is node {peer}, which has nothing to say here")
        self._hear(pair, theirs)
        if pair.is_met:  # The peer considers the session over, or does not know of it.
            self._begin_anew(pair)
        if former := pair.connections.incoming.get(channel):
            former.close()
        pair.connections.incoming[channel] = connection
        self._note(pair, theirs, connection)
        try:
            await connection.welcome(self._standing(pair))
        except BaseException:
            if pair.connections.incoming.get(channel) is connection:
                del pair.connections.incoming[channel]
            raise
        self._check(pair)

    def _refuse(self, reason: str) -> None:
        self.refused += 1
        if self.refused <= _REFUSALS_LOGGED:
            _LOG.warning("node %d refused a connection that %s", self._me, reason)

    async def _reach(self, pair: Pair) -> None:
        """Connect to a peer whenever it is not connected."""
        while True:
            pair.changed.clear()
            again = asyncio.get_running_loop().time() + _RETRY_SECONDS
            connected = await asyncio.gather(*(self._connect(pair, channel) for channel in pair.unreached))
            if not (all(connected) or pair.is_tried) and self._host is not None:
                pair.is_tried = True
                self._news.set()
                self._host.missed(pair.peer)
            with suppress(TimeoutError):
                async with asyncio.timeout_at(None if all(connected) else again):
                    await pair.changed.wait()

    async def _connect(self, pair: Pair, channel: Channel) -> bool:
        """Connect to a peer on one channel; whether that has worked."""
        mine, ends = pair.mine, Ends(self._me, pair.peer, channel)
        try:
            async with asyncio.timeout(self._timeouts.handshake):
                connection, theirs = await Connection.connect(
                    self._addresses[pair.peer], self._credentials, ends, self._standing(pair), within=pair.patience
                )
        except PeerError as error:
            pair.is_refused = True
            pair.trouble = f"it {error}; does it have the same secret or CA, scenario, version and code?"
            return False
        except OSError as error:
            # The event loop puts the address in place of the system's words.
            of_system = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
            pair.trouble = of_system or str(error) or "no answer"
            return False
        try:
            self._hear(pair, theirs)
        except PeerError:
            connection.close()
            return False
        if pair.mine != mine:
            connection.close()
            return False
        pair.connections.outgoing[channel] = connection
        self._note(pair, theirs, connection)
        self._check(pair)
        return True

    @property
    def _clock(self) -> float | None:
        return None if self._host is None else self._host.clock

    def _standing(self, pair: Pair) -> Standing:
        return replace(pair.mine, clock=self._clock)

    def _hear(self, pair: Pair, theirs: Standing) -> None:
        """Accept a peer's standing. Raises PeerError for an invalid one."""
        pair.seeks = theirs.joins and theirs.clock is None
        if pair.hear(theirs, self._clock):
            self._begin_anew(pair)

    def _begin_anew(self, pair: Pair) -> None:
        """Give up the connections with a peer."""
        if pair.is_met:
            if self._host is not None:
                self._host.superseded(pair.peer)
            pair.part()
        else:
            pair.let_go()

    def _note(self, pair: Pair, theirs: Standing, connection: Connection) -> None:
        """Measure the link, and learn when the run began: the earliest estimate is the most exact."""
        round_trip = min(least_round_trip(connection.socket), _LONGEST_ROUND_TRIP)
        pair.patience = max(_PATIENCE * round_trip, _RETRY_SECONDS)
        if theirs.clock is not None:
            began = time.monotonic() - theirs.clock - round_trip / 2
            self.began = began if self.began is None else min(self.began, began)
            self._news.set()

    async def _more(self) -> None:
        self._news.clear()
        await self._news.wait()

    def _check(self, pair: Pair) -> None:
        if pair.connections.is_complete and not pair.is_met:
            self._news.set()
            if self._host is not None:
                pair.is_met = pair.is_tried = True
                self._host.met(pair.peer, pair.connections)
