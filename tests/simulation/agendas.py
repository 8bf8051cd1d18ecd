"""Event queues in tests."""

from __future__ import annotations

import math

from dlion_sim.simulation.event_queue import EventQueue


def finish(event_queue: EventQueue) -> None:
    """Make all calls."""
    while event_queue.next_time < math.inf:
        event_queue.step()
