"""A flow-level network in virtual time: transfers share links max-min fairly while capacities change under them.

Not modelled: packets, slow start, congestion control, loss. A flow has its fair rate at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import simpy
from simpy.events import EventPriority

from dlion_sim.simulation.fairness import max_min_rates

# After everything else of the same instant, so that what starts and ends together is shared out once.
_LATE = EventPriority(2)


class _Late(simpy.Event):
    """An event of this instant that comes after all others of it."""

    def __init__(self, env: simpy.Environment, callback: Callable[[simpy.Event], None]) -> None:
        super().__init__(env)
        self._ok = True
        self._value = None
        self.callbacks = [callback]
        env.schedule(self, priority=_LATE)


class Flow:
    """A transfer under way: at `since`, `remaining` bytes were left to send at `rate` bytes per second."""

    __slots__ = ("done", "rate", "remaining", "route", "since")

    def __init__(self, route: tuple[int, ...], size: float, since: float, done: Callable[[], None]) -> None:
        self.route = route
        self.remaining = size
        self.since = since
        self.rate = 0.0
        self.done = done

    def change_rate(self, rate: float, now: float) -> None:
        """Go on at `rate` from now."""
        if rate != self.rate:
            self.remaining -= (now - self.since) * self.rate
            self.since = now
            self.rate = rate

    @property
    def end(self) -> float:
        """When it ends at its present rate (seconds)."""
        return self.since + max(0.0, self.remaining) / self.rate if self.rate > 0 else float("inf")


class FlowNetwork:
    """Links, by number, with their present `capacities` in bytes per second, and the flows over them."""

    def __init__(self, env: simpy.Environment, capacities: Sequence[float]) -> None:
        self._env = env
        self.capacities = list(capacities)
        self._flows: dict[Flow, None] = {}  # an ordered set: ties resolve by arrival
        self._rerate_is_due = False
        self._generation = 0

    def start(self, route: tuple[int, ...], size: float, done: Callable[[], None]) -> Flow:
        """Send `size` bytes over the links of `route`; `done` is called when the last one has been sent."""
        flow = Flow(route, size, self._env.now, done)
        self._flows[flow] = None
        self._request_rerate()
        return flow

    def set_capacity(self, link: int, capacity: float) -> None:
        """From now on `link` carries `capacity` bytes per second; 0 is an outage."""
        self.capacities[link] = capacity
        self._request_rerate()

    def _request_rerate(self) -> None:
        if not self._rerate_is_due:
            self._rerate_is_due = True
            _Late(self._env, self._rerate)

    def _rerate(self, _: simpy.Event) -> None:
        self._rerate_is_due = False
        now = self._env.now
        rates = max_min_rates([flow.route for flow in self._flows], self.capacities)
        for flow, rate in zip(self._flows, rates, strict=True):
            flow.change_rate(rate, now)
        self._await_next_end()

    def _await_next_end(self) -> None:
        """One event for the whole network; a scheduled event can't be taken back, so an outdated one does nothing."""
        self._generation += 1
        generation = self._generation
        ends = [(flow.end, flow) for flow in self._flows]
        first = min((end for end, _ in ends), default=float("inf"))
        if first == float("inf"):
            return
        ending = [flow for end, flow in ends if end == first]

        def end(_: simpy.Event) -> None:
            if generation == self._generation:
                for flow in ending:
                    del self._flows[flow]
                self._request_rerate()
                for flow in ending:
                    flow.done()

        self._env.timeout(max(0.0, first - self._env.now)).callbacks.append(end)
