"""The receiving end of a channel from a peer, for messages that come in datagrams: puts them together. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import numpy as np

from dlion_sim.learning.flat import Layout
from dlion_sim.live.datagrams import Feedback, Packet, Seen
from dlion_sim.live.frames import Kind, PeerError
from dlion_sim.live.notices import Notice, count_in, of_packets
from dlion_sim.protocol.faults import MalformedMessageError
from dlion_sim.protocol.messages import Announcement, Channel, Message, check_indices, decode_header
from dlion_sim.scenario import Dlcp
from dlion_sim.transport.assembling import Assembler
from dlion_sim.transport.bounds import Bounds
from dlion_sim.transport.cutting import PAYLOAD, is_cut, payloads
from dlion_sim.transport.dlcp import BITMAP, FEEDBACK, NEW, RECEIVER, STOP, accept, expect, probed

_MOST_EARLY = 64
"""Packets that are kept though the frame that announces their message has not come yet: it may take longer than they do,
on another way."""


class Taken(Enum):
    """What became of a packet."""

    USED = "used"
    REFUSED = "refused"
    """It is none that can be, or came before."""
    UNANNOUNCED = "unannounced"
    """It is of no message that is coming now, but one that is over, mostly."""


@dataclass(frozen=True)
class Rules:
    """What a node knows of the messages that may come, of models laid out as `layout` says."""

    dlcp: Dlcp
    layout: Layout
    participants: int
    largest: int
    """Bytes that a message has at most."""
    bounds: Bounds
    assembler: Assembler


class Receiver:
    """Receives the messages of `peer` on a channel, one after another, as node `me`.

    `tell` hands what is to be told of a message to the control connection, and `arrived` gets each message.
    """

    def __init__(
        self,
        me: int,
        peer: int,
        channel: Channel,
        rules: Rules,
        tell: Callable[[Kind, Notice], None],
        arrived: Callable[[Message], None],
    ) -> None:
        self._me = me
        self._peer = peer
        self._channel = channel
        self._rules = rules
        self._tell = tell
        self._arrived = arrived
        self._record = np.zeros(1, RECEIVER)[0]
        self._number = 0
        """Of the message."""
        self._message: Message | None = None
        """While it is coming, with what of its tensors is there."""
        self._early: list[tuple[Packet, bytes, bool]] = []
        self._answered: Packet | None = None
        """The packet that feedback is due for."""

    def start(self, notice: Notice) -> None:
        """A message is announced. Raises PeerError unless it can be, before anything is allocated for it."""
        if self._message is not None or notice.number != self._number + 1:
            raise PeerError("announced a message out of turn")
        announced = self._checked(notice)
        self._number = notice.number
        data = np.empty(announced.size - announced.header_bytes, np.uint8)
        self._message = message = announced.message(data.data)
        self._tensors = [memoryview(buffer) for buffer in message.buffers[1:]]
        self._stride = PAYLOAD // len(self._tensors)
        """Bytes of each tensor in a packet."""
        self._sizes = payloads(message)
        self._have = np.zeros(len(self._sizes), np.uint8)
        self._bound = self._rules.bounds.of(message, whole=self._rules.assembler.must_be_whole(message))
        self._missing = np.zeros(len(self._bound.allowed), np.int64)
        self._seen = Seen()
        bound, early = self._rules.dlcp.stop_early, self._early
        expect(self._record, self._bound.group, self._sizes, self._missing, self._bound.allowed, int(bound))
        self._early = []
        for packet, payload, marked in early:
            self.take(packet, memoryview(payload), marked)

    def take(self, packet: Packet, payload: memoryview, marked: bool) -> Taken:
        """Take in an authentic packet, with the mark of a congested link or not. Raises PeerError where the whole
        message makes no sense."""
        if self._message is None or packet.message != self._number:
            return self._keep(packet, payload, marked)
        if packet.packet >= len(self._sizes) or len(payload) != self._sizes[packet.packet]:
            return Taken.REFUSED
        if not self._seen.add(packet.number):
            return Taken.REFUSED
        bound = self._bound
        flags = accept(
            self._record,
            self._have,
            bound.group,
            self._sizes,
            self._missing,
            bound.allowed,
            packet.packet,
            packet.number,
            int(marked),
        )
        if flags & NEW:
            self._write(packet.packet, payload)
        if flags & FEEDBACK:
            self._answered = packet
        if flags & STOP:
            self._finish(self._message)
        return Taken.USED

    def query(self, notice: Notice) -> None:
        """The sender has sent all. Raises PeerError for what it has not announced."""
        sent = count_in(notice.rest)
        if notice.number != self._number:
            raise PeerError("asked for a message that it has not announced")
        if self._message is None:
            return  # It is on its way that this one is over.
        match probed(self._record, self._have, sent):
            case flag if flag & STOP:
                self._finish(self._message)
            case flag if flag & BITMAP:
                self._tell(Kind.BITMAP, Notice(self._channel, self._number, of_packets(self._have)))

    def feedback(self) -> bytes | None:
        """The header of the feedback that is due, if any is."""
        answered, self._answered = self._answered, None
        if answered is None or self._message is None:
            return None
        highest, received, marked = (int(self._record[name]) for name in ("highest", "received", "marked"))
        return Feedback(self._channel, self._me, self._number, highest, received, marked, answered.clock).header()

    def _checked(self, notice: Notice) -> Announcement:
        rules = self._rules
        try:
            announced = decode_header(notice.rest, workers=rules.participants, parameters=rules.layout.size)
        except MalformedMessageError as error:
            raise PeerError(f"announced no message of this run: {error}") from None
        lengths = {entries for _, entries in announced.shapes}
        fits = len(lengths) == 1 and announced.size <= rules.largest and announced.header_bytes == len(notice.rest)
        if not fits or announced.sender != self._peer or announced.body.channel is not self._channel:
            raise PeerError("announced a message that cannot come from it in datagrams")
        if announced.body.stage is None or not lengths.pop():
            raise PeerError("announced a message that cannot come from it in datagrams")
        return announced

    def _keep(self, packet: Packet, payload: memoryview, marked: bool) -> Taken:
        """Keep a packet of the next message, if there is room, until that is announced."""
        if self._message is not None or packet.message != self._number + 1 or len(self._early) == _MOST_EARLY:
            return Taken.UNANNOUNCED
        self._early.append((packet, bytes(payload), marked))
        return Taken.USED

    def _write(self, packet: int, payload: memoryview) -> None:
        start, each = packet * self._stride, len(payload) // len(self._tensors)
        for number, tensor in enumerate(self._tensors):
            tensor[start : start + each] = payload[number * each : (number + 1) * each]

    def _finish(self, message: Message) -> None:
        """Enough is there."""
        self._message = self._answered = None
        self._tell(Kind.STOP, Notice(self._channel, self._number, of_packets(self._have)))
        received = self._rules.assembler.assemble(message, self._have)
        try:
            check_indices(received, self._rules.layout.size)
        except MalformedMessageError as error:
            raise PeerError(f"sent no message of this run: {error}") from None
        self._arrived(received)
