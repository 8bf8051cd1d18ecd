"""A flow-level network in virtual time: transfers share links max-min fairly while capacities change.

Not modelled: packets, slow start, congestion control, loss. A flow has its fair rate at once, up to its own bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from dlion_sim.simulation.event_queue import EventQueue
from dlion_sim.simulation.sharing import SharedLinks


class FlowNetwork:
    """Links, by number, with their present capacities `bytes_per_second`, and the flows over them.

    `cross_traffic` is the share of a flow's rate that loads its return route. If `is_weighted`, flows have weights.
    """

    def __init__(
        self,
        event_queue: EventQueue,
        bytes_per_second: Sequence[float],
        cross_traffic: float = 0.0,
        *,
        is_weighted: bool = False,
    ) -> None:
        self._event_queue = event_queue
        self.bytes_per_second = list(bytes_per_second)
        self._links = SharedLinks(bytes_per_second, cross_traffic, is_weighted=is_weighted)
        self._done: dict[int, Callable[[], None]] = {}
        self._cut: list[int] = []
        """Flows to remove at the end of this instant."""
        self._settlement_is_due = False
        self._next_end = math.inf
        """The time at which the next flows end."""
        self.settled: Callable[[], None] | None = None
        """Called after each computation of rates, and may change flows."""

    @property
    def is_moving(self) -> bool:
        """Whether any flow will end with the present capacities; valid at the end of an instant."""
        return self._next_end < math.inf

    def start(
        self,
        route: Sequence[int],
        size: float,
        done: Callable[[], None],
        return_route: Sequence[int] = (),
        most: float = math.inf,
        weight: int = 1,
    ) -> int:
        """Send `size` bytes over the distinct links of `route`; `done` is called when the last one has been sent.

        Its rate is at most `most` bytes per second, and its share of full links is proportional to its `weight`, if
        flows are weighted. Returns the flow's number, which is valid until it is done.
        """
        flow = self._links.add(route, size, return_route, most, weight)
        self._done[flow] = done
        self._request_settlement()
        return flow

    def has(self, flow: int) -> bool:
        """Whether a flow has begun and not ended."""
        return flow in self._done

    def pace(self, flows: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """The rates (bytes per second) and remaining bytes of flows, once rates are computed."""
        return self._links.rates(flows), self._links.remaining(flows, self._event_queue.now)

    def levels(self, links: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """The rate at which a full link holds flows (bytes per second); infinite for one that is not full."""
        return self._links.levels(links)

    def remaining(self, flows: Sequence[int]) -> list[float]:
        left: list[float] = self._links.remaining(flows, self._event_queue.now).tolist()
        return left

    def cut(self, flow: int) -> None:
        """End a flow without calling `done`."""
        del self._done[flow]
        self._cut.append(flow)
        self._next_end = math.inf  # Of those that end in this instant, it may be one.
        self._request_settlement()

    def resize(self, link: int, bytes_per_second: float) -> None:
        """Set the capacity of `link`; 0 is an outage."""
        self.bytes_per_second[link] = bytes_per_second
        self._links.resize(link, bytes_per_second)
        self._request_settlement()

    def check_restored(self) -> None:
        """Raise ValueError unless the capacities of a checkpoint are those of its links."""
        if not isinstance(self._links, SharedLinks) or len(self.bytes_per_second) != len(self._links):
            raise ValueError("its network has other links than capacities")

    def _request_settlement(self) -> None:
        if not self._settlement_is_due:
            self._settlement_is_due = True
            # Late, so that rates are computed once for all flows that start and end in this instant.
            self._event_queue.late(self._settle)

    def _settle(self) -> None:
        self._settlement_is_due = False
        now = self._event_queue.now
        end = self._links.settle(now)
        if self._cut:  # Only now, as flows that started in this instant may be among them.
            for slot in self._cut:
                self._links.remove(slot)
            self._cut.clear()
            end = self._links.settle(now)
        pause = max(0.0, end - now)
        self._next_end = now + pause
        if pause < math.inf:
            # In the background, as it may be outdated by then.
            self._event_queue.after(pause, self._end, background=True)
        if self.settled is not None:
            self.settled()

    def _end(self) -> None:
        if self._event_queue.now != self._next_end:
            return
        self._next_end = math.inf  # further calls for this instant find nothing to do
        ended = self._links.remove_ending()
        self._request_settlement()
        for done in [self._done.pop(slot) for slot in ended]:
            done()
