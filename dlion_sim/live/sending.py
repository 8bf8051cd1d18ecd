"""The sending end of a channel to a peer, for messages in datagrams. No I/O."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dlion_sim.assembly import Loss, Part
from dlion_sim.bounded_loss.cutting import PAYLOAD, Cut, Cutter
from dlion_sim.bounded_loss.dlcp import (
    PROBE,
    SENDER,
    begin,
    bitmap,
    deadline,
    expire,
    feedback,
    open_sender,
    stop,
    take,
)
from dlion_sim.live.connection import tos_of_priority
from dlion_sim.live.datagrams import Counts, Feedback, Key, Packet
from dlion_sim.live.frames import PeerError
from dlion_sim.live.notices import Bitmap, Notice, Probe, Start, Stop, packets_in
from dlion_sim.protocol.messages import Channel, Message
from dlion_sim.scenario import Dlcp

_ECT = 0x02
"""ECN-capable, ECT(0): switches mark such packets instead of dropping them (RFC 3168)."""


class Carried(NamedTuple):
    """How a message was carried."""

    loss: Loss
    seconds: float | None
    """The link's time for it; None if it was too short to measure."""


class Sender:
    """Sends messages to a peer on a channel, one after another, as node `me`; times are in seconds by any one clock.

    `key` seals packets, a round trip takes about so many seconds, datagrams are counted in `counts`, and `tell` sends a
    notice.
    """

    def __init__(
        self,
        me: int,
        channel: Channel,
        key: Key,
        cutter: Cutter,
        dlcp: Dlcp,
        round_trip: float,
        counts: Counts,
        tell: Callable[[Notice], None],
    ) -> None:
        self._me = me
        self._channel = channel
        self._key = key
        self._cutter = cutter
        self._counts = counts
        self._tell = tell
        self._record = np.zeros(1, SENDER)[0]
        self._round_trip = round_trip
        """The shortest so far."""
        window = dlcp.initial_window if dlcp.congestion_control == "dctcp" else math.inf
        open_sender(self._record, float(window), round_trip, dlcp.least_timeout)
        self._number = 0
        """Of the message."""
        self._cut: Cut | None = None
        """The message's, while there is one."""
        self.progress = 0.0
        """When more of the message was last known to have arrived."""

    def begin(self, message: Message, now: float) -> None:
        """Begin to send a message, once the last one is over."""
        self._number += 1
        self._cut = cut = self._cutter.cut(message)
        self._tell(Start(self._channel, self._number, message.header))
        self._tensors = [memoryview(buffer) for buffer in message.buffers[1:]]
        self._size = message.size
        self._stride = PAYLOAD // len(self._tensors)
        """Bytes of each tensor in a packet."""
        self._tos = [
            tos_of_priority(priority) | (_ECT if protected else 0)
            for priority, protected in zip(cut.priority.tolist(), cut.protected.tolist(), strict=True)
        ]
        self._have = np.zeros(len(cut.order), np.uint8)
        self._times = np.zeros(len(cut.order), np.int64)
        """The number of times each packet was sent."""
        self._began = self.progress = now
        begin(self._record, len(cut.order), now)

    def next(self, now: float) -> tuple[bytes, int] | None:
        """The datagram to send now, and the byte in its IP header for priority and ECN; None if there is none yet."""
        if self._cut is None:
            return None
        number = int(self._record["sent"])
        packet = take(self._record, self._cut.order, self._have, now)
        if packet == PROBE:
            self._tell(Probe(self._channel, self._number, number))
        if packet < 0:
            return None
        self._times[packet] += 1
        start = packet * self._stride
        payload = [tensor[start : start + self._stride] for tensor in self._tensors]
        header = Packet(self._channel, self._me, self._number, packet, number, now).header()
        return self._key.seal(header, payload), self._tos[packet]

    def heard(self, told: Feedback, now: float) -> None:
        """Handle authentic feedback."""
        if self._cut is None or told.message != self._number:
            self._counts.unannounced += 1
            return
        sent, received = int(self._record["sent"]), int(self._record["received"])
        if not received < told.received <= told.highest + 1 <= sent or told.marked > told.received:
            self._counts.refused += 1
            return
        round_trip = now - told.clock if self._began <= told.clock < now else 0.0
        if round_trip:
            self._round_trip = min(self._round_trip, round_trip)
        feedback(self._record, told.highest, told.received, told.marked, round_trip, now)
        self.progress = now

    def missing(self, notice: Bitmap, now: float) -> None:
        """The receiver answers a PROBE. Raises PeerError if there was none."""
        there = packets_in(notice.have, len(self._open(notice).order))
        if (there > self._have).any():
            self.progress = now
        bitmap(self._record, self._have, there, now)

    def stopped(self, notice: Stop, now: float) -> Carried:
        """The receiver has enough: how the message was carried. Raises PeerError where there is none."""
        cut = self._open(notice)
        there = packets_in(notice.have, len(cut.order))
        stop(self._record)
        self._cut = None
        return Carried(self._loss(cut, there.astype(bool), now - self._began), notice.pace * self._size or None)

    def abort(self) -> None:
        """Send nothing more."""
        stop(self._record)
        self._cut = None

    @property
    def arrived(self) -> float:
        """The number of the message's bytes that are known to have arrived."""
        return float(self._record["received"]) * PAYLOAD

    @property
    def deadline(self) -> float:
        """When to call `expire`."""
        return float(deadline(self._record))

    def expire(self, now: float) -> bool:
        """Handle a timeout; whether there was one, after which there is something to send."""
        return bool(expire(self._record, now))

    def _open(self, notice: Bitmap | Stop) -> Cut:
        if self._cut is None or notice.number != self._number:
            raise PeerError("answered for a message that it was not sent")
        return self._cut

    def _loss(self, cut: Cut, there: NDArray[np.bool_], elapsed: float) -> Loss:
        return Loss(
            lost=int(cut.payloads[~there].sum()),
            resent=int((cut.payloads * np.maximum(0, self._times - 1)).sum()),
            saved=int(cut.payloads[self._times == 0].sum()),
            parts=tuple(_parts(cut, there)),
            seconds=max(0.0, elapsed - self._round_trip / 2),
        )


def _parts(cut: Cut, there: NDArray[np.bool_]) -> list[Part]:
    """Loss of each variable's large and small packets. When they arrived only their receiver knows."""
    keys, of = np.unique(2 * cut.variable.astype(np.int64) + cut.large, return_inverse=True)
    all_bytes = np.bincount(of, cut.payloads)
    lost = np.bincount(of, cut.payloads * ~there)
    return [
        Part(int(key) // 2, bool(key % 2), int(whole), int(missing), None)
        for key, whole, missing in zip(keys, all_bytes, lost, strict=True)
    ]
