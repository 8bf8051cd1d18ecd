"""What TCP makes of messages and links: bytes that it adds, and how much of them may be under way."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import assert_never

from dlion_sim.scenario import Lv08, Network, NoTcp, Windows

_SEGMENT, _FRAME, _ACKNOWLEDGEMENT = 1448, 1514, 66
"""Bytes of a segment with timestamps; of the full Ethernet frame, with IPv4, that has it; of what acknowledges it."""
_WEIGHT, _LEAST_SECONDS = 2**16, 1e-6
"""The weight of a flow that takes a second, and the least that any takes: sums of weights are exact."""


@dataclass(frozen=True)
class Framing:
    """What a protocol adds to messages."""

    data: float
    """Bytes on a link for each byte of a message."""
    acknowledgements: float
    """Bytes that go back for each byte on a link."""


TCP = Framing(_FRAME / _SEGMENT, _ACKNOWLEDGEMENT / (2 * _FRAME))
"""Full segments, and an acknowledgement for every second one (RFC 1122)."""


@dataclass(frozen=True)
class SlowStart:
    """How a connection's window comes about."""

    initial: float
    """The window that it begins with: bytes on links in a round trip."""
    idle_restart: bool
    """Whether a window that is not used shrinks again."""


@dataclass(frozen=True)
class TcpModel:
    """What holds messages up beside links that are shared."""

    framing: Framing = TCP
    latency_factor: float | None = None
    """So many times its route's latency passes before a message's first byte is sent, and none after its last one.
    Without it a message is sent at once, and its latency passes after that."""
    window: float = math.inf
    """At most so many bytes are on a route's links in a round trip."""
    sharing_size: float | None = None
    """Bytes that take a flow as long as its share of full links is small; without it all have the same share."""
    slow_start: SlowStart | None = None
    """Without it, a window is as large as it can be from the first byte on."""

    @classmethod
    def of(cls, network: Network) -> TcpModel:
        """The one that a scenario asks for."""
        match tcp := network.tcp:
            case NoTcp():
                return IDEAL
            case Lv08():
                framing = Framing(1 / tcp.bandwidth_factor, _LV08_CROSS_TRAFFIC)
                return cls(framing, tcp.latency_factor, tcp.window, tcp.sharing_size)
            case Windows():
                slow_start = SlowStart(tcp.initial_window * float(_FRAME), tcp.idle_restart)
                return cls(window=tcp.receive_window * TCP.data, slow_start=slow_start)
            case _:
                assert_never(tcp)

    def weight(self, latency: float, bytes_per_second: Iterable[float]) -> int:
        """Of a flow, for its route's latency and links: what its share of full links is in proportion to."""
        if self.sharing_size is None:
            return 1
        seconds = latency + sum(self.sharing_size / max(capacity, 1.0) for capacity in bytes_per_second)
        return max(1, round(_WEIGHT / max(seconds, _LEAST_SECONDS)))

    def most_under_way(self, loss: float) -> float:
        """The largest window where such a part of packets is lost (Mathis et al., 1997, with every frame confirmed)."""
        return min(self.window, _FRAME * math.sqrt(1.5 / loss)) if loss else self.window


IDEAL = TcpModel()
"""Nothing but links holds messages up."""
_LV08_CROSS_TRAFFIC = 0.05
"""SimGrid's `network/crosstraffic`."""
