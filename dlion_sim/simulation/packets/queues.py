"""Rows of the queues of ports, interval by interval."""

from __future__ import annotations

from collections.abc import Sequence

from dlion_sim.results import QueuesRow
from dlion_sim.simulation.packets.network import PacketNetwork


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
