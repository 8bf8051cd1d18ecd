"""The receiving end of a channel from a peer, for messages in datagrams. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dlion_sim.bounded_loss.assembling import Assembler
from dlion_sim.bounded_loss.bounds import Bounds
from dlion_sim.bounded_loss.cutting import PAYLOAD, payloads
from dlion_sim.bounded_loss.dlcp import BITMAP, FEEDBACK, NEW, RECEIVER, STOP, accept, expect, probed
from dlion_sim.learning.flat import Layout
from dlion_sim.live.datagrams import Counts, Feedback, Observed, Packet
from dlion_sim.live.frames import PeerError
from dlion_sim.live.notices import Bitmap, Notice, Probe, Start, Stop, bits
from dlion_sim.protocol.messages import (
    Announcement,
    Channel,
    MalformedMessageError,
    Message,
    check_indices,
    decode_header,
)
from dlion_sim.scenario import Dlcp

_MOST_EARLY = 64
"""Packets kept of a message whose announcement, over TCP, has not arrived yet."""
_FEWEST_TIMED = 3
"""Packets."""


@dataclass(frozen=True)
class Rules:
    """The common state of receivers, for models laid out as `layout` says."""

    dlcp: Dlcp
    layout: Layout
    workers: int
    participants: int
    bounds: Bounds
    assembler: Assembler


class Receiver:
    """Receives the messages of `peer` on a channel, one after another, as node `me`.

    Datagrams are counted in `counts`; `tell` sends a notice; `arrived` gets each message.
    """

    def __init__(
        self,
        me: int,
        peer: int,
        channel: Channel,
        rules: Rules,
        counts: Counts,
        tell: Callable[[Notice], None],
        arrived: Callable[[Message], None],
    ) -> None:
        self._me = me
        self._peer = peer
        self._channel = channel
        self._rules = rules
        self._counts = counts
        self._tell = tell
        self._arrived = arrived
        self._record = np.zeros(1, RECEIVER)[0]
        self._number = 0
        """Of the message."""
        self._message: Announcement | None = None
        """Until it is complete."""
        self._early: list[tuple[Packet, bytes, bool, float]] = []
        self._answered: Packet | None = None
        """The packet that feedback is due for."""

    def start(self, notice: Start) -> None:
        """A message is announced. Raises PeerError unless it can be, before anything is allocated for it."""
        if self._message is not None or notice.number != self._number + 1:
            raise PeerError("announced a message out of turn")
        self._message = announced = self._checked(notice)
        self._number = notice.number
        self._data = np.empty(announced.size - announced.header_bytes, np.uint8).data
        """Of the tensors, one after another, all as long."""
        self._tensors = len(announced.shapes)
        message = announced.message(self._data)
        self._sizes = payloads(message)
        self._have = np.zeros(len(self._sizes), np.uint8)
        self._bound = self._rules.bounds.of(message, whole=self._rules.assembler.must_be_whole(message))
        self._missing = np.zeros(len(self._bound.allowed), np.int64)
        self._seen = Observed()
        self._first: tuple[float, int] | None = None
        """The time of the first packet, and its length."""
        self._latest = 0.0
        """The time of the latest new packet."""
        early, self._early = self._early, []
        stops_early = int(self._rules.dlcp.stop_early)
        expect(self._record, self._bound.group, self._sizes, self._missing, self._bound.allowed, stops_early)
        for packet, payload, marked, at in early:
            self.take(packet, memoryview(payload), marked, at)

    def take(self, packet: Packet, payload: memoryview, marked: bool, at: float) -> None:
        """Receive an authentic packet, CE-marked or not, that arrived `at` a time (s).

        Raises PeerError if it completes an invalid message.
        """
        if self._message is None or packet.message != self._number:
            self._keep(packet, payload, marked, at)
            return
        fits = packet.packet < len(self._sizes) and len(payload) == self._sizes[packet.packet]
        if not fits or not self._seen.add(packet.number):
            self._counts.refused += 1
            return
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
            self._first = self._first or (at, len(payload))
            self._latest = at
        if flags & FEEDBACK:
            self._answered = packet
        if flags & STOP:
            self._finish(self._message)

    def probe(self, notice: Probe) -> None:
        """The sender has sent all. Raises PeerError for what it has not announced."""
        if notice.number != self._number:
            raise PeerError("asked for a message that it has not announced")
        if self._message is None:
            return  # STOP is on its way.
        match probed(self._record, self._have, notice.sent):
            case flag if flag & STOP:
                self._finish(self._message)
            case flag if flag & BITMAP:
                self._tell(Bitmap(self._channel, self._number, bits(self._have)))

    def feedback(self) -> bytes | None:
        """The header of the feedback that is due, if any is."""
        answered, self._answered = self._answered, None
        if answered is None or self._message is None:
            return None
        highest, received, marked = (int(self._record[name]) for name in ("highest", "received", "marked"))
        return Feedback(self._channel, self._me, self._number, highest, received, marked, answered.clock).header()

    def _checked(self, notice: Start) -> Announcement:
        rules = self._rules
        try:
            announced = decode_header(notice.header, workers=rules.participants, parameters=rules.layout.size)
        except MalformedMessageError as error:
            raise PeerError(f"announced no message of this run: {error}") from None
        body, lengths = announced.body, {entries for _, entries in announced.shapes}
        if (
            (announced.sender, body.channel, announced.header_bytes) != (self._peer, self._channel, len(notice.header))
            or body.stage is None
            or len(lengths) != 1
            or not 0
            < lengths.pop()
            <= rules.layout.size - body.first_entry(self._peer, rules.workers, rules.layout.size)
        ):
            raise PeerError("announced a message that cannot come from it in datagrams")
        return announced

    def _keep(self, packet: Packet, payload: memoryview, marked: bool, at: float) -> None:
        """Keep a packet of the next message, if there is room, until that is announced."""
        if self._message is None and packet.message == self._number + 1 and len(self._early) < _MOST_EARLY:
            self._early.append((packet, bytes(payload), marked, at))
        else:
            self._counts.unannounced += 1

    def _write(self, packet: int, payload: memoryview) -> None:
        tensors = self._tensors
        each, start = len(payload) // tensors, packet * (PAYLOAD // tensors)
        for tensor in range(tensors):
            self._data[start : start + each] = payload[tensor * each : (tensor + 1) * each]
            start += len(self._data) // tensors

    def _pace(self) -> float:
        """Seconds per byte of the packets after the first one; 0 if they are too few."""
        if self._first is None or self._have.sum() < _FEWEST_TIMED:
            return 0.0
        since, size = self._first
        return max(0.0, self._latest - since) / float(self._sizes @ self._have - size)

    def _finish(self, announced: Announcement) -> None:
        """Enough is there."""
        self._message = self._answered = None
        message = announced.message(self._data)
        self._tell(Stop(self._channel, self._number, bits(self._have), self._pace()))
        received = self._rules.assembler.assemble(message, self._have)
        try:
            check_indices(received, self._rules.layout.size)
        except MalformedMessageError as error:
            raise PeerError(f"sent no message of this run: {error}") from None
        self._arrived(received)
