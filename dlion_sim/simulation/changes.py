"""Links whose capacities change: the event queue has each change happen at its time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from dlion_sim.scenario import Schedule
from dlion_sim.simulation.event_queue import EventQueue
from dlion_sim.simulation.routing import BITS_PER_BYTE

CapacityChanged = Callable[[], None]


class Changes:
    """Those of links with such `capacities_bps`: `resize` is told link and bytes per second, and then `changed`."""

    def __init__(
        self,
        event_queue: EventQueue,
        capacities_bps: Sequence[Schedule],
        *,
        resize: Callable[[int, float], None],
        changed: CapacityChanged,
    ) -> None:
        self._event_queue = event_queue
        self._capacities_bps = capacities_bps
        self._resize = resize
        self._changed = changed
        for link in range(len(capacities_bps)):
            self._plan(link, 1)

    def is_gone(self, link: int) -> bool:
        """Whether a link will never carry a bit again."""
        return math.isinf(self._capacities_bps[link].finish_time(self._event_queue.now, 1.0))

    def _plan(self, link: int, number: int) -> None:
        """Plan the `number`-th change of a link's capacity, if there is one."""
        change = self._capacities_bps[link].change(number)
        if change is not None:
            time, capacity_bps = change
            change_it = partial(self._change, link, number, capacity_bps)
            self._event_queue.after(time - self._event_queue.now, change_it, background=True)

    def _change(self, link: int, number: int, capacity_bps: float) -> None:
        self._resize(link, capacity_bps / BITS_PER_BYTE)
        self._changed()
        self._plan(link, number + 1)
