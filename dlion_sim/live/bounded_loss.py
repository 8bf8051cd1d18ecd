"""Messages that may lose a part, between a node and its peers: in datagrams, under DLCP's rules.

One socket is for all; each channel to a peer has a sender, each from a peer a receiver. What must arrive, a message's
header and what both ends tell each other of it, goes over the control connections.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from dlion_sim.bounded_loss.assembling import Assembler
from dlion_sim.bounded_loss.bounds import Bounds
from dlion_sim.bounded_loss.cutting import Cutter, is_cut
from dlion_sim.errors import InputError
from dlion_sim.learning.flat import Layout
from dlion_sim.live.datagram_socket import DatagramSocket, UdpAddress
from dlion_sim.live.datagrams import ORIGIN_BYTES, Counts, Feedback, Key, Packet, Sort, origin
from dlion_sim.live.frames import Kind, PeerError
from dlion_sim.live.link_timing import least_round_trip
from dlion_sim.live.notices import Notice
from dlion_sim.live.pair import Connections
from dlion_sim.live.pump import Pump
from dlion_sim.live.receiving import Receiver, Rules
from dlion_sim.live.rehearsal import rehearse
from dlion_sim.live.sending import Carried, Sender
from dlion_sim.live.sockets import PeerClosedError
from dlion_sim.protocol.messages import Channel, Message
from dlion_sim.scenario import Dlcp

_ANY_ROUND_TRIP = 1.0
"""Seconds; where TCP has not measured it yet (RFC 6298)."""
Lane = tuple[int, Channel]
"""A peer, and which of its channels."""


class Links(Protocol):
    """What datagrams need of a node's connections."""

    def tell_of(self, peer: int, kind: Kind, notice: Notice) -> None:
        """Tell a peer something of a message, over the control connection."""

    def came(self, peer: int, message: Message) -> None:
        """A message is here."""

    def failed(self, peer: int, error: PeerError) -> None:
        """A peer does what it may not."""


class Outgoing:
    """A channel to a peer at an address, for messages one at a time."""

    def __init__(self, all_of_them: BoundedLoss, sender: Sender, address: UdpAddress) -> None:
        self._all = all_of_them
        self.sender = sender
        self.address = address
        self.carried: asyncio.Future[Carried | None] | None = None
        """What becomes of the message that is being sent, if one is: nothing, where the peer is gone."""

    def takes(self, message: Message) -> bool:
        """Whether it is one that may lose a part."""
        return is_cut(message, self._all.dlcp)

    async def send(self, message: Message) -> Carried:
        """Send a message until its receiver has enough of it, and return what became of it. Raises PeerError."""
        return await self._all.send(self, message)

    def arrived(self) -> float:
        """Bytes of the message that is being sent which are known to have arrived."""
        return self.sender.arrived


@dataclass(eq=False)
class _Incoming:
    """A channel from a peer."""

    receiver: Receiver
    feedback_key: Key
    address: UdpAddress


class BoundedLoss:
    """What node `me` sends and gets in datagrams over `socket`, in a run of models laid out as `layout` says.

    A message of which nothing more arrives for `silence` seconds has a peer that is gone. Switches know so many
    `priorities`.
    """

    def __init__(
        self,
        me: int,
        socket: DatagramSocket,
        dlcp: Dlcp,
        layout: Layout,
        *,
        workers: int,
        participants: int,
        priorities: int,
        silence: float,
    ) -> None:
        self._me = me
        self._socket = socket
        self.dlcp = dlcp
        self._silence = silence
        self._cutter = Cutter(dlcp, layout, workers, priorities)
        self._assembler = Assembler(dlcp, layout, workers)
        self._rules = Rules(dlcp, layout, workers, participants, Bounds(dlcp, layout, workers), self._assembler)
        self.counts = Counts()
        self._pump = Pump(socket)
        self._outgoing: dict[Lane, Outgoing] = {}
        self._incoming: dict[Lane, _Incoming] = {}
        self._takers: dict[bytes, tuple[Key, Callable[[memoryview, memoryview, bool, float], None]]] = {}
        """By origin: what a datagram is checked by, and who takes it, with its payload, mark and time."""
        self._answering: set[_Incoming] = set()
        """Those that may have feedback to give."""
        rehearse(self.dlcp, self._cutter, self._rules)

    def begin(self, links: Links) -> None:
        """Exchange with peers that are connected over these."""
        self._links = links
        self._loop = asyncio.get_running_loop()
        self._socket.begin(self._take, self._taken)

    def connect(self, peer: int, connections: Connections) -> None:
        """Exchange with the peer of these connections; what was before is over."""
        tell = partial(self._links.tell_of, peer)
        for channel, (connection, seal) in connections.outgoing.items():
            if connection.family != self._socket.family:
                raise InputError(
                    f"node {peer} is not reached by datagrams: it has another kind of address", path="transport"
                )
            key, back = Key(Sort.PACKET, seal.derived(b"packets")), Key(Sort.FEEDBACK, seal.derived(b"feedback"))
            round_trip = min(least_round_trip(connection), _ANY_ROUND_TRIP)
            sender = Sender(self._me, channel, key, self._cutter, self.dlcp, round_trip, self.counts, tell)
            self._outgoing[peer, channel] = Outgoing(self, sender, connection.getpeername())
            self._takers[origin(Sort.FEEDBACK, channel, peer)] = back, partial(self._take_feedback, sender)
        for channel, (_, seal) in connections.incoming.items():
            key, back = Key(Sort.PACKET, seal.derived(b"packets")), Key(Sort.FEEDBACK, seal.derived(b"feedback"))
            receiver = Receiver(self._me, peer, channel, self._rules, self.counts, tell, partial(self._hand_over, peer))
            incoming = _Incoming(receiver, back, self._outgoing[peer, channel].address)
            self._incoming[peer, channel] = incoming
            self._takers[origin(Sort.PACKET, channel, peer)] = key, partial(self._take_packet, peer, incoming)

    def on(self, lane: Lane) -> Outgoing:
        """A channel to a peer."""
        return self._outgoing[lane]

    async def send(self, outgoing: Outgoing, message: Message) -> Carried:
        """Send a message until its receiver has enough of it. Raises PeerError."""
        outgoing.carried = self._loop.create_future()
        outgoing.sender.begin(message, self._loop.time())
        self._pump.open(outgoing.sender, outgoing.address)  # later, so that what announces it goes first
        try:
            return await self._patiently(outgoing.sender, outgoing.carried)
        finally:
            outgoing.sender.abort()
            outgoing.carried = None
            self._pump.close(outgoing.sender, outgoing.address)

    def heard(self, peer: int, kind: Kind, payload: memoryview) -> None:
        """A peer tells something of a message. Raises PeerError for what it may not."""
        notice = Notice.parse(payload)
        outgoing, incoming = self._outgoing[peer, notice.channel], self._incoming[peer, notice.channel]
        match kind:
            case Kind.START:
                incoming.receiver.start(notice)
                self._answering.add(incoming)
                self._taken()
            case Kind.QUERY:
                incoming.receiver.query(notice)
            case Kind.BITMAP:
                outgoing.sender.missing(notice, self._loop.time())
                self._pump.run()
            case Kind.STOP:
                carried = outgoing.sender.stopped(notice, self._loop.time())
                if outgoing.carried is not None and not outgoing.carried.done():
                    outgoing.carried.set_result(carried)

    def hang_up(self, peer: int) -> None:
        """Nothing can be sent to a peer any more."""
        for channel in Channel:
            outgoing = self._outgoing.get((peer, channel))
            if outgoing is not None and outgoing.carried is not None and not outgoing.carried.done():
                outgoing.carried.set_result(None)
        self._assembler.lost(peer)

    def close(self) -> None:
        """Neither send nor receive any more."""
        self._pump.end()
        self._socket.close()

    async def _patiently(self, sender: Sender, carried: asyncio.Future[Carried | None]) -> Carried:
        while (left := sender.progress + self._silence - self._loop.time()) > 0:
            done, _ = await asyncio.wait({carried}, timeout=left)
            if done:
                if (what := carried.result()) is None:
                    raise PeerClosedError("closed the connection")
                return what
        raise PeerError("took nothing for too long")

    def _take(self, data: memoryview, marked: bool, at: float) -> None:
        """Take in a datagram, which may be anybody's."""
        self.counts.received += 1
        if found := self._takers.get(bytes(data[:ORIGIN_BYTES])):
            key, take = found
            if (payload := key.opened(data)) is not None:
                take(data, payload, marked, at)
                return
        self.counts.refused += 1

    def _take_packet(
        self, peer: int, incoming: _Incoming, data: memoryview, payload: memoryview, marked: bool, at: float
    ) -> None:
        try:
            incoming.receiver.take(Packet.parse(data), payload, marked, at)
        except PeerError as error:
            self._links.failed(peer, error)
        self._answering.add(incoming)

    def _take_feedback(self, sender: Sender, data: memoryview, *_: object) -> None:
        sender.heard(Feedback.parse(data), self._loop.time())

    def _taken(self) -> None:
        """Answer what has come, and send on."""
        for incoming in self._answering:
            if header := incoming.receiver.feedback():
                # Where there is no room it is lost; the next one says more.
                self._socket.send((incoming.feedback_key.seal(header),), 0, incoming.address)
        self._answering.clear()
        self._pump.run()

    def _hand_over(self, peer: int, message: Message) -> None:
        """What a message leads to waits until all has been read that is there."""
        self._loop.call_soon(self._links.came, peer, message)
