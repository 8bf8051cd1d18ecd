"""Messages that may lose a part, between a node and its peers: in datagrams, under DLCP's rules.

All share one socket. Each channel of a peer is a lane, with a sender and a receiver. Headers and notices, which must
arrive, go over the control connections.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from dlion_sim.bounded_loss.assembling import Assembler
from dlion_sim.bounded_loss.bounds import Bounds
from dlion_sim.bounded_loss.cutting import Cutter, is_cut
from dlion_sim.errors import InputError
from dlion_sim.learning.flat import Layout
from dlion_sim.live.connection import Connection
from dlion_sim.live.datagram_socket import DatagramSocket
from dlion_sim.live.datagrams import ORIGIN_BYTES, Counts, Feedback, Key, Packet, Sort, origin
from dlion_sim.live.frames import PeerError
from dlion_sim.live.link_timing import least_round_trip
from dlion_sim.live.notices import Bitmap, Notice, Probe, Start, Stop
from dlion_sim.live.pair import Connections
from dlion_sim.live.pump import Pump
from dlion_sim.live.receiving import Receiver, Rules
from dlion_sim.live.rehearsal import rehearse
from dlion_sim.live.sending import Carried, Sender
from dlion_sim.live.tls_stream import PeerClosedError
from dlion_sim.protocol.messages import Channel, Message
from dlion_sim.scenario import Dlcp

if TYPE_CHECKING:
    from dlion_sim.live.session import Session

_ANY_ROUND_TRIP = 1.0
"""Seconds; where TCP has not measured it yet (RFC 6298)."""
_Take = Callable[[memoryview, memoryview, bool, float], None]
"""Takes a datagram, its payload, whether it is marked, and when it came."""


class BoundedLoss:
    """What node `me` sends and gets in datagrams over `socket`, in a run of models laid out as `layout` says.

    A message of which nothing more arrives for `silence` seconds has a peer that is gone. Switches have so many
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
        self.me = me
        self.socket = socket
        self.dlcp = dlcp
        self.silence = silence
        self.cutter = Cutter(dlcp, layout, workers, priorities)
        self.assembler = Assembler(dlcp, layout, workers)
        self.rules = Rules(dlcp, layout, workers, participants, Bounds(dlcp, layout, workers), self.assembler)
        self.counts = Counts()
        self.pump = Pump(socket)
        self._takers: dict[bytes, tuple[Key, _Take]] = {}
        """By origin: what a datagram is checked by, and what takes it."""
        self._answering: set[Lane] = set()
        """Those that may have feedback to give."""
        rehearse(dlcp, self.cutter, self.rules)

    def begin(self) -> None:
        """Receive, in the running event loop."""
        self.socket.begin(self._take, self._taken)

    def lanes(self, session: Session, peer: int, connections: Connections) -> Mapping[Channel, Lane]:
        """The peer's lanes, which take the place of former ones. Raises InputError if it cannot be reached."""
        lanes = {}
        for channel, outgoing in connections.outgoing.items():
            if outgoing.socket.family != self.socket.family:
                raise InputError(
                    f"node {peer} is not reached by datagrams: it has another kind of address", path="transport"
                )
            incoming = connections.incoming[channel]
            lanes[channel] = lane = Lane(self, session, peer, channel, outgoing, incoming)
            feedback = Key(Sort.FEEDBACK, outgoing.peer_key)
            self._takers[origin(Sort.FEEDBACK, channel, peer)] = feedback, lane.take_feedback
            packets = Key(Sort.PACKET, incoming.peer_key)
            self._takers[origin(Sort.PACKET, channel, peer)] = packets, lane.take_packet
        return lanes

    def close(self) -> None:
        """Neither send nor receive any more."""
        self.pump.end()
        self.socket.close()

    def answer(self, lane: Lane) -> None:
        """A lane may have feedback to give once all datagrams are read."""
        self._answering.add(lane)

    def _take(self, data: memoryview, marked: bool, at: float) -> None:
        """Take in a datagram, of any origin."""
        self.counts.received += 1
        if found := self._takers.get(bytes(data[:ORIGIN_BYTES])):
            key, take = found
            if (payload := key.opened(data)) is not None:
                take(data, payload, marked, at)
                return
        self.counts.refused += 1

    def _taken(self) -> None:
        """Give feedback, and send more."""
        for lane in self._answering:
            lane.give_feedback()
        self._answering.clear()
        self.pump.run()


class Lane:
    """A channel with a peer, in both directions, for messages one at a time."""

    def __init__(
        self,
        shared: BoundedLoss,
        session: Session,
        peer: int,
        channel: Channel,
        outgoing: Connection,
        incoming: Connection,
    ) -> None:
        self._shared = shared
        self._session = session
        self._peer = peer
        self._loop = asyncio.get_running_loop()
        self.address = outgoing.socket.getpeername()
        key = Key(Sort.PACKET, outgoing.key)
        round_trip = min(least_round_trip(outgoing.socket), _ANY_ROUND_TRIP)
        self._sender = Sender(
            shared.me, channel, key, shared.cutter, shared.dlcp, round_trip, shared.counts, session.tell
        )
        self._feedback_key = Key(Sort.FEEDBACK, incoming.key)
        self._receiver = Receiver(shared.me, peer, channel, shared.rules, shared.counts, session.tell, self._hand_over)
        self._carried: asyncio.Future[Carried | None] | None = None
        """How the message that is being sent was carried: None if the peer is gone."""

    def takes(self, message: Message) -> bool:
        """Whether the message may lose a part."""
        return is_cut(message, self._shared.dlcp)

    async def send(self, message: Message) -> Carried:
        """Send a message until its receiver has enough of it. Raises PeerError."""
        self._carried = self._loop.create_future()
        self._sender.begin(message, self._loop.time())
        self._shared.pump.open(self._sender, self.address)  # later, so that what announces it goes first
        try:
            while (left := self._sender.progress + self._shared.silence - self._loop.time()) > 0:
                if (await asyncio.wait({self._carried}, timeout=left))[0]:
                    if (carried := self._carried.result()) is None:
                        raise PeerClosedError("closed the connection")
                    return carried
            raise PeerError("took nothing for too long")
        finally:
            self._sender.abort()
            self._carried = None
            self._shared.pump.close(self._sender, self.address)

    def arrived(self) -> float:
        """Bytes of the message that is being sent which are known to have arrived."""
        return self._sender.arrived

    def heard(self, notice: Notice) -> None:
        """A notice of the peer. Raises PeerError for one that it may not give."""
        match notice:
            case Start():
                self._receiver.start(notice)
                self._shared.answer(self)
            case Probe():
                self._receiver.probe(notice)
            case Bitmap():
                self._sender.missing(notice, self._loop.time())
                self._shared.pump.run()
            case Stop():
                self._end(self._sender.stopped(notice, self._loop.time()))

    def hang_up(self) -> None:
        """Nothing can be sent to the peer any more."""
        self._end(None)
        self._shared.assembler.lost(self._peer)

    def take_packet(self, data: memoryview, payload: memoryview, marked: bool, at: float) -> None:
        """Take in an authentic packet."""
        try:
            self._receiver.take(Packet.parse(data), payload, marked, at)
        except PeerError as error:
            self._session.failed(error)
        self._shared.answer(self)

    def take_feedback(self, data: memoryview, *_: object) -> None:
        """Take in authentic feedback."""
        self._sender.heard(Feedback.parse(data), self._loop.time())

    def give_feedback(self) -> None:
        """Send the feedback that is due, if any is. If there is no room it is lost; the next one says more."""
        if header := self._receiver.feedback():
            self._shared.socket.send(self._feedback_key.seal(header), 0, self.address)

    def _hand_over(self, message: Message) -> None:
        """What a message causes waits until all datagrams are read."""
        self._loop.call_soon(self._session.came, message)

    def _end(self, carried: Carried | None) -> None:
        if self._carried is not None and not self._carried.done():
            self._carried.set_result(carried)
