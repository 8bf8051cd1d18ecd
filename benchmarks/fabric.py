"""The leaf-spine fabric of data-centre studies: 9 leaves of 16 hosts, 4 spines."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from dlion_sim.simulation.packets.network import Port


@dataclass(frozen=True)
class Fabric:
    """Ports by number: hosts' own, leaves' to hosts, leaves' to spines, spines' to leaves.

    A spine link carries `16 / 4` times as much as a host's, so that nothing is oversubscribed.
    """

    buffer: float
    """Bytes of each port."""
    mark_above: float = math.inf
    drop_above: float = math.inf
    leaves: int = 9
    each: int = 16
    """Hosts of a leaf."""
    spines: int = 4
    rate: float = 100e9 / 8
    """Bytes per second of a host."""
    latency: float = 6.5e-6
    """Seconds one way, from any host to any other."""

    @property
    def hosts(self) -> int:
        return self.leaves * self.each

    @cached_property
    def ports(self) -> list[Port]:
        down = Port(self.rate, self.buffer, self.drop_above, self.mark_above)
        spine = down._replace(rate=self.rate * self.each / self.spines)
        return [Port(self.rate)] * self.hosts + [down] * self.hosts + [spine] * (2 * self.leaves * self.spines)

    def paths(self, sender: int, receiver: int) -> list[tuple[int, ...]]:
        """All that lead from one host to another, by spine."""
        leaf, other = sender // self.each, receiver // self.each
        down = self.hosts + receiver
        if leaf == other:
            return [(sender, down)]
        first = 2 * self.hosts
        above = first + self.leaves * self.spines
        return [
            (sender, first + leaf * self.spines + spine, above + other * self.spines + spine, down)
            for spine in range(self.spines)
        ]
