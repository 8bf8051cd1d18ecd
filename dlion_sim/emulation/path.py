"""One direction of the path between two clouds, which can be cut off while it is used."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dlion_sim.assembly.outages import Outage
from dlion_sim.emulation.shaped_link import run


@dataclass(frozen=True)
class Path:
    """What goes from a router to a subnet by a gateway, but in its outages."""

    router: Any
    subnet: str
    gateway: str
    outages: Sequence[Outage]

    def changes(self) -> Iterator[tuple[float, float]]:
        """(seconds since the start, 0 or 1: whether anything goes over it from then on)."""
        for outage in self.outages:
            yield outage.begin, 0
            if math.isfinite(outage.end):
                yield outage.end, 1

    def set(self, is_there: float) -> None:
        """Cut it off, by the router's routes, or have it be there again. Raises InputError where the kernel refuses."""
        way = [self.subnet, "via", self.gateway] if is_there else ["blackhole", self.subnet]
        run(self.router, "ip", "route", "replace", *way)
