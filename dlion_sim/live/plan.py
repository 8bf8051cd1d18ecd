"""What a node's driver is to go by."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from dlion_sim.assembly.outages import Outage


@dataclass(frozen=True)
class Plan:
    """Who takes part, and when there is something to do: seconds since the start."""

    workers: int
    participants: int
    same_machine: Collection[int]
    """Those to whom messages cross no link, and are no traffic."""
    duration: float | None
    evaluate_every: float
    is_open: bool = False
    """Whether who is lost may come back, and who was not there may come."""
    absent: Collection[int] = ()
    """Who is not there at the start."""
    returns: Callable[[int, float], bool] = lambda rank, now: False
    """Whether somebody who is not there at a time is still to come."""
    next_outage: Callable[[float], Outage | None] = lambda now: None
    """When the node's machine is to go next after a time."""
    joins: bool = False
    """Whether the run is under way."""
    began: float | None = None
    """When it began, by this machine's `time.monotonic`, where that need not be asked of others."""
