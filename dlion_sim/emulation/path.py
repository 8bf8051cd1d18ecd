"""One direction of the path between two clouds, which can be cut off while it is used."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dlion_sim.assembly.outages import Outage
from dlion_sim.emulation.shaped_link import run
from dlion_sim.scenario import Schedule


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


def with_routes(outages: Sequence[Outage], interrupted: Schedule, whole: Schedule) -> Schedule:
    """What the device at the path's begin is to send: as `interrupted`, but all it can (`whole`) in such `outages`.

    In these it is the routes that let nothing through. A device that hardly sent anything would hold back what waits in
    it until the path is there again, and then owe for a second and more what it has sent.
    """

    def is_cut(time: float) -> bool:
        return any(outage.begin <= time < outage.end for outage in outages)

    return Schedule(tuple((time, whole.value_at(time) if is_cut(time) else bps) for time, bps in interrupted.steps))
