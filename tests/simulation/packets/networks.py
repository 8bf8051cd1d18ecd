"""Small networks of packets for tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dlion_sim.bounded_loss.bounds import Bound
from dlion_sim.bounded_loss.cutting import PAYLOAD, Cut
from dlion_sim.simulation.packets.network import Completion, PacketNetwork, Port

RATE = 12.5e6
"""Bytes per second."""


class Star:
    """Hosts around one switch: host h sends on port h and receives on port `hosts` + h, which has the queue."""

    def __init__(
        self,
        hosts: int,
        rate: float = RATE,
        *,
        seed: int = 0,
        switches: Sequence[float] = (),
        fair: bool = False,
        **queue,
    ) -> None:
        self.hosts = hosts
        ports = [Port(rate)] * hosts + [Port(rate, **queue)] * hosts  # type: ignore[arg-type]
        self.network = PacketNetwork(ports, switches=switches, fair=fair, seed=seed)

    def connect(self, sender: int, receiver: int, **settings) -> int:
        ways = [[(one, self.hosts + other)] for one, other in ((sender, receiver), (receiver, sender))]
        return self.network.connect(*ways, **settings)


def times(completions: list[Completion], what: str) -> dict[int, float]:
    """When that came of each message."""
    return {each.message: each.time for each in completions if each.what == what}


def cut(packets: int, *, protected: bool = True, priority: int = 0, payload: int = PAYLOAD) -> Cut:
    """A message of full packets, all alike."""
    alike = np.zeros(packets, np.int64)
    return Cut(
        alike + payload,
        alike.astype(np.int32),
        alike.astype(bool),
        (alike + priority).astype(np.int8),
        alike.astype(bool) | protected,
        np.arange(packets, dtype=np.int32),
    )


def bound(packets: int, part: float) -> Bound:
    """So much of that message may be missing."""
    return Bound(np.zeros(packets, np.int32), np.array([int(part * packets * PAYLOAD)]))
