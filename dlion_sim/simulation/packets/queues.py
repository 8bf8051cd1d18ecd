"""Counters of ports, and rows of their queues, interval by interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dlion_sim.results import QueuesRow
from dlion_sim.simulation.packets.memory import Memory
from dlion_sim.simulation.packets.state import CLASSES

if TYPE_CHECKING:
    from dlion_sim.simulation.packets.network import PacketNetwork

COUNTERS = np.dtype(
    [
        *((name, np.int64, (CLASSES,)) for name in ("carried", "dropped", "marked")),
        *((name, np.int64) for name in ("packets", "queued", "most")),
        ("byte_seconds", np.float64),
    ]
)
"""The counters of a port: see `PacketNetwork.counters`."""


def counters(memory: Memory, now: float) -> npt.NDArray[Any]:
    """A record of `COUNTERS` for each port, until now."""
    ports = memory["ports"][: memory.used("ports")]
    queues = memory["queues"][: memory.used("queues")].reshape(-1, CLASSES)
    counted = np.zeros(len(ports), COUNTERS)
    for field in ("carried", "dropped", "marked"):
        counted[field] = queues[field]
    for field in ("packets", "queued", "most"):
        counted[field] = ports[field]
    counted["byte_seconds"] = ports["byte_seconds"] + ports["queued"] * (now - ports["changed"])
    return counted


class Queues:
    """The queues of a network's ports, with these names."""

    def __init__(self, network: PacketNetwork, names: Sequence[str]) -> None:
        self._network = network
        self._names = names
        self._since = 0.0
        self._before = network.counters()

    def rows(self, now: float) -> list[QueuesRow]:
        """A row for each port, of the interval since the last call."""
        seconds, before, counted = now - self._since, self._before, self._network.counters()
        if not seconds:
            return []
        self._since, self._before = now, counted
        self._network.forget_most()
        sums = {name: (counted[name] - before[name]).sum(axis=1) for name in ("carried", "dropped", "marked")}
        columns = (
            sums["carried"].tolist(),
            ((counted["byte_seconds"] - before["byte_seconds"]) / seconds).tolist(),
            counted["most"].tolist(),
            sums["dropped"].tolist(),
            sums["marked"].tolist(),
        )
        return [QueuesRow(now, *row) for row in zip(self._names, *columns, strict=True)]
