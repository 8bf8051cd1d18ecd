"""Emulated links and paths, one direction each, which change while nodes use them."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from dlion_sim.assembly.outages import Outage
from dlion_sim.emulation.shaping import Flow, Queues, reshape
from dlion_sim.errors import InputError
from dlion_sim.scenario import Schedule

CONGESTION_CONTROL = "reno"
"""Namespaces can choose only this or the kernel's default, which differs."""


@dataclass(frozen=True)
class Link:
    """One direction of a link: what a device of a node sends."""

    name: str
    node: Any
    device: str
    capacity: Schedule | None
    """In bits per second; None: no limit of its own."""
    delay: float
    """In seconds, by the kernel."""
    flows: Sequence[Flow]
    """All that can cross it."""
    queues: Queues

    def changes(self) -> Iterator[tuple[float, float]]:
        """(seconds since the start, bits per second from then on), without end if its schedule repeats."""
        return self.capacity.changes() if self.capacity else iter(())

    def set(self, bps: float) -> None:
        """Change its capacity from now on. Raises InputError if the kernel refuses."""
        run(self.node, *reshape(self.device, bps, self.delay, self.queues))


@dataclass(frozen=True)
class Path:
    """The path from a router to a subnet by a gateway, with outages."""

    router: Any
    subnet: str
    gateway: str
    outages: Sequence[Outage]

    def changes(self) -> Iterator[tuple[float, float]]:
        """(seconds since the start, 0 or 1: whether the path exists from then on)."""
        for outage in self.outages:
            yield outage.begin, 0
            if math.isfinite(outage.end):
                yield outage.end, 1

    def set(self, is_there: float) -> None:
        """Cut or restore it, by the router's routes. Raises InputError if the kernel refuses."""
        route = [self.subnet, "via", self.gateway] if is_there else ["blackhole", self.subnet]
        run(self.router, "ip", "route", "replace", *route)


def with_routes(outages: Sequence[Outage], interrupted: Schedule, whole: Schedule) -> Schedule:
    """The capacity of a path's first device: as `interrupted`, but `whole` in these `outages`.

    In these, routes let nothing through. A device of hardly any capacity would hold its queue until the path is back,
    and then send less than its capacity for a second and more.
    """

    def is_cut(time: float) -> bool:
        return any(outage.begin <= time < outage.end for outage in outages)

    return Schedule(tuple((time, whole.value_at(time) if is_cut(time) else bps) for time, bps in interrupted.steps))


class Changing(Protocol):
    """A link, path or processor."""

    def changes(self) -> Iterator[tuple[float, float]]:
        """(seconds since the start, value from then on), perhaps without end."""

    def set(self, value: float, /) -> None:
        """Change it from now on."""


def in_order(all_of_them: Sequence[Changing]) -> Iterator[tuple[float, partial[None]]]:
    """(seconds since the start, function that makes the change) of all changes, perhaps without end."""

    def changes(one: Changing) -> Iterator[tuple[float, partial[None]]]:
        return ((at, partial(one.set, value)) for at, value in one.changes())

    return heapq.merge(*map(changes, all_of_them), key=lambda change: change[0])


def run(node: Any, *command: str) -> None:
    """Run a command on a node. Raises InputError if it fails."""
    _, errors, code = node.pexec(list(command))
    if code:
        raise InputError(f"this machine cannot emulate the scenario: '{command[0]}' says: {errors}")
