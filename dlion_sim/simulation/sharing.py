"""Max-min fair sharing of links among flows, recomputed incrementally after each change.

Max-min fairness (Bertsekas & Gallager, Data Networks, 6.5.2): raise the rates of all flows together; whenever a link is
full, the flows that cross it and still rise stay at its *level*; the link is their bottleneck. A link that never fills
has level infinity.

A change of some links does not affect rates below their levels. So the filling begins at the lowest level that may
have changed, and is repeated on the changed links alone; all others fill up at their former level. When a flow's rate
differs from its former one, the links that it crosses count as changed too, from that level on.

A flow with a bound of its own has a link of its own, which no other flow crosses.

A flow may also load the links of a return route, with a fixed share of its rate: TCP's acknowledgements,
*cross-traffic* in SimGrid's terms. They are subtracted from those links' capacities, and these do not limit the flow.
As they depend on the rates that they change, filling is repeated until they agree, to a thousandth of a capacity.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain, repeat
from struct import Struct
from typing import Any

import numpy as np
import numpy.typing as npt

from dlion_sim.addresses import locate
from dlion_sim.simulation import progressive_filling
from dlion_sim.simulation.progressive_filling import BLOCK, LONGEST_ROUTE, NOWHERE

_NOT_RESIZED = np.empty((0, 2))
_PADDING = [(NOWHERE,) * (LONGEST_ROUTE - links) for links in range(LONGEST_ROUTE + 1)]
"""The padding of a route, by its number of links."""
_ARRIVAL = Struct(f"={progressive_filling.ARRIVAL}d")
"""Writes a row of a new flow, faster than NumPy."""
_LEAST_ROOM = 256
"""The initial room of a link for flows that cross it."""


class SharedLinks:
    """Links, by number, with capacities `bytes_per_second`, and flows over them, by slot.

    Slots are numbered from 0 and reused. Changes take effect at the next `settle`; no flow may be added and removed
    between two of these. `cross_traffic` is the share of a flow's rate on its return route.
    """

    def __init__(
        self, bytes_per_second: Sequence[float], cross_traffic: float = 0.0, *, is_weighted: bool = False
    ) -> None:
        self._weights = np.empty(0) if is_weighted else None
        self._cross_traffic = cross_traffic
        self._shared = links = len(bytes_per_second)
        """The number of shared links. After them, if any flow has a bound, follows a link for each slot."""
        self._links = np.zeros(links, progressive_filling.LINK)
        self._links["capacity"] = bytes_per_second
        self._links["level"] = np.inf
        self._links["room"] = _LEAST_ROOM
        self._links["first"] = np.arange(links) * _LEAST_ROOM
        self._unused: list[int] = []
        self._flows = np.empty(0, progressive_filling.FLOW)
        self._progress = np.empty(0, progressive_filling.PROGRESS)
        self._routes = np.empty((0, LONGEST_ROUTE), np.int32)
        self._returns = np.empty((0, LONGEST_ROUTE), np.int32)
        self._crossing = np.empty(links * _LEAST_ROOM, np.int32)
        self._taken = len(self._crossing)
        """The used length of it."""
        self._spare = 0
        """The least room left on any link."""
        self._ends = np.empty(0)
        self._earliest = np.empty(0)
        self._ending = np.empty(0, np.int64)
        self._endings = 0
        """The number of flows that end next; 0 once they are removed."""
        self._heap = np.empty((3 * links, 2))
        self._changed = np.empty(links, np.int64)
        self._touched = np.empty(links, np.int64)
        self._counters = np.zeros(progressive_filling.COUNTERS, np.int64)
        self._arrived = np.empty((1, progressive_filling.ARRIVAL))
        self._arrivals = 0
        """The number of flows added since the last `settle`."""
        self._left = np.empty(0, np.int64)
        self._departures = 0
        """The number of flows removed since then."""
        self._freed: list[int] = []
        """The slots of removed and ended flows."""
        self._resized: list[tuple[int, float]] = []
        self._located = self._locate()

    def __len__(self) -> int:
        return self._shared

    def add(
        self,
        route: Sequence[int],
        size: float,
        return_route: Sequence[int] = (),
        most: float = math.inf,
        weight: int = 1,
    ) -> int:
        """Add a flow of `size` bytes over the distinct links of `route`; returns its slot.

        There are at most LONGEST_ROUTE links, or one fewer if the flow has a bound of `most` bytes per second. Its
        share of full links is proportional to its `weight`, if flows are weighted.
        """
        if not self._unused:
            self._grow()
        slot = self._unused.pop()
        if most < math.inf:
            route = *route, self._own_link(slot, most)
        if self._arrivals == len(self._arrived):
            self._arrived = _longer(self._arrived, 2 * self._arrivals, NOWHERE)
            self._located = self._locate()
        if self._weights is not None:
            self._weights[slot] = weight
        links = *route, *_PADDING[len(route)], *return_route, *_PADDING[len(return_route)]
        _ARRIVAL.pack_into(self._arrived, self._arrivals * _ARRIVAL.size, slot, size, *links)  # type: ignore[arg-type]
        self._arrivals += 1
        return slot

    def remove(self, slot: int) -> None:
        self._left[self._departures] = slot
        self._departures += 1
        self._freed.append(slot)

    def remove_ending(self) -> list[int]:
        """Remove the flows that end next, once per `settle`; returns their slots, in order."""
        slots: list[int] = self._ending[: self._endings].tolist()
        self._freed += slots
        return slots

    def resize(self, link: int, bytes_per_second: float) -> None:
        """Set the capacity of `link`. Raises ValueError if there is none of that number."""
        if not 0 <= link < self._shared:
            raise ValueError(f"there is no link {link} among {self._shared}")
        self._resized.append((link, bytes_per_second))

    def settle(self, now: float) -> float:
        """Compute the fair rates from `now` on (seconds), and return the time of the next end of a flow."""
        self._spare -= self._arrivals
        if self._spare < 0:
            self._make_room()
        resized = np.array(self._resized, np.float64) if self._resized else _NOT_RESIZED
        ended = len(self._freed) - self._departures
        changes = self._located, now, self._departures, ended, self._arrivals, resized, self._cross_traffic
        if self._weights is None:
            end, self._endings = progressive_filling.settle(*changes)
        else:
            end, self._endings = progressive_filling.settle_weighted(*changes, self._weights)
        if self._freed:
            self._unused += self._freed
            self._freed = []
        self._arrivals, self._departures = 0, 0
        if self._resized:
            self._resized = []
        return float(end)

    def rates(self, slots: Sequence[int] | npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """The rates of flows since the last `settle` (bytes per second)."""
        rates: npt.NDArray[np.float64] = self._flows["rate"][np.asarray(slots, np.int64)]
        return rates

    def levels(self, links: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """The levels of links since the last `settle`."""
        levels: npt.NDArray[np.float64] = self._links["level"][links]
        return levels

    def remaining(self, slots: Sequence[int] | npt.NDArray[np.int64], now: float) -> npt.NDArray[np.float64]:
        """The remaining bytes, at `now`, of flows that were there at the last `settle`."""
        at = np.asarray(slots, np.int64)
        progress = self._progress[at]
        left: npt.NDArray[np.float64] = progress["remaining"] - (now - progress["since"]) * self._flows["rate"][at]
        return left

    def _make_room(self) -> None:
        """Make room on each link for the added flows."""
        routes = self._arrived[: self._arrivals, 2 : 2 + LONGEST_ROUTE].astype(np.int64)
        shared = self._links[: self._shared]
        crossing = routes[(routes != NOWHERE) & (routes < self._shared)]
        crossed = shared["crossed"] + np.bincount(crossing, minlength=self._shared)
        for link in np.flatnonzero(crossed > shared["room"]):
            self._move(int(link), 2 * int(crossed[link]))
        self._spare = int((shared["room"] - crossed).min())

    def _own_link(self, slot: int, most: float) -> int:
        link = self._shared + slot
        if link >= len(self._links):
            self._grow_own_links()
        self._resized.append((link, most))
        return link

    def _grow_own_links(self) -> None:
        had, have = len(self._links), self._shared + len(self._ends)
        first = self._take(have - had)
        self._links = _longer(self._links, have, 0)
        self._links["level"][had:] = np.inf
        self._links["room"][had:] = 1
        self._links["first"][had:] = np.arange(first, self._taken)
        self._heap = _longer(self._heap, 3 * have, 0)
        self._changed = _longer(self._changed, have, 0)
        self._touched = _longer(self._touched, have, 0)
        self._located = self._locate()

    def _move(self, number: int, room: int) -> None:
        """Move a link's flows to a place with more room."""
        first = self._take(room)
        link = self._links[number]
        flows = self._crossing[link["first"] :][: link["crossed"]]
        self._crossing[first:][: len(flows)] = flows
        link["first"], link["room"] = first, room

    def _take(self, room: int) -> int:
        """Reserve `room` entries of `crossing`, and return their begin."""
        first = self._taken
        self._taken += room
        if self._taken > len(self._crossing):
            self._crossing = _longer(self._crossing, 2 * self._taken, 0)
            self._located = self._locate()
        return first

    def _grow(self) -> None:
        had = len(self._ends)
        have = max(BLOCK, 2 * had)
        self._flows = _longer(self._flows, have, 0)
        self._progress = _longer(self._progress, have, 0)
        self._routes = _longer(self._routes, have, NOWHERE)
        self._returns = _longer(self._returns, have, NOWHERE)
        self._ends = _longer(self._ends, have, np.inf)
        self._earliest = _longer(self._earliest, have // BLOCK, np.inf)
        self._ending = _longer(self._ending, have, 0)
        self._left = _longer(self._left, have, 0)
        if self._weights is not None:
            self._weights = _longer(self._weights, have, 1)
        self._located = self._locate()
        self._unused += range(have - 1, had - 1, -1)

    def _locate(self) -> npt.NDArray[np.int64]:
        """The addresses of the arrays, to be updated when one is replaced."""
        located: npt.NDArray[np.int64] = locate(
            self._links,
            self._flows,
            self._progress,
            self._routes,
            self._returns,
            self._crossing,
            self._ends,
            self._earliest,
            self._ending,
            self._heap,
            self._changed,
            self._touched,
            self._left,
            self._arrived,
            self._counters,
        )
        return located

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.check_restored()
        self._located = self._locate()

    def check_restored(self) -> None:
        """Raise ValueError for a state of a checkpoint with indices out of bounds: compiled code does not check
        them."""
        links, flows, taken = len(self._links), len(self._ends), len(self._crossing)
        shapes: dict[str, tuple[Any, tuple[int, ...]]] = {
            "links": (progressive_filling.LINK, (links,)),
            "flows": (progressive_filling.FLOW, (flows,)),
            "progress": (progressive_filling.PROGRESS, (flows,)),
            "routes": (np.int32, (flows, LONGEST_ROUTE)),
            "returns": (np.int32, (flows, LONGEST_ROUTE)),
            "crossing": (np.int32, (taken,)),
            "ends": (np.float64, (flows,)),
            "earliest": (np.float64, (flows // BLOCK,)),
            "ending": (np.int64, (flows,)),
            "heap": (np.float64, (3 * links, 2)),
            "changed": (np.int64, (links,)),
            "touched": (np.int64, (links,)),
            "left": (np.int64, (flows,)),
            "arrived": (np.float64, (len(self._arrived), progressive_filling.ARRIVAL)),
            "counters": (np.int64, (progressive_filling.COUNTERS,)),
        }
        if self._weights is not None:
            shapes["weights"] = np.float64, (flows,)
        for name, (dtype, shape) in shapes.items():
            array = getattr(self, f"_{name}")
            if array.dtype != dtype or array.shape != shape or not array.flags.carray:
                raise ValueError(f"{name} of links are not {dtype} {shape}")
        if not 0 <= self._shared <= links:
            raise ValueError("indices of links are out of bounds")
        arrived = self._arrived[: self._arrivals]
        first, room, crossed = (self._links[each].astype(np.int64) for each in ("first", "room", "crossed"))
        within = (
            (self._routes, NOWHERE, links - 1),
            (self._returns, NOWHERE, links - 1),
            (self._flows["bottleneck"], progressive_filling.GONE, links - 1),
            (first, 0, taken),
            (crossed, 0, room),
            (self._taken_by(first, crossed), 0, flows - 1),
            (self._left[: self._departures], 0, flows - 1),
            (self._ending[: self._endings], 0, flows - 1),
            (np.array(self._freed, np.int64), 0, flows - 1),
            (arrived[:, 0], 0, flows - 1),
            (arrived[:, 2:], NOWHERE, links - 1),
            (np.array(self._unused, np.int64), 0, flows - 1),
            (np.array([link for link, _ in self._resized], np.int64), 0, links - 1),
            (np.array([self._arrivals]), 0, len(self._arrived)),
            (np.array([self._departures]), 0, min(flows, len(self._freed))),
            (np.array([self._endings]), len(self._freed) - self._departures, flows),
            (np.array([self._spare]), -len(self._arrived), (room - crossed)[: self._shared].min(initial=_LEAST_ROOM)),
            *self._own_links_within(arrived, room, crossed),
            (np.array([self._taken]), (first + room).max(initial=0), taken),
            (self._counters, 0, 2**31 - 2),
            (np.ones(1) if self._weights is None else self._weights, 1, 2**53),
        )
        if not all(((array >= least) & (array <= most)).all() for array, least, most in within):
            raise ValueError("indices of links are out of bounds")

    def _own_links_within(
        self, arrived: npt.NDArray[np.float64], room: npt.NDArray[np.int64], crossed: npt.NDArray[np.int64]
    ) -> Iterator[tuple[npt.NDArray[Any], int, int]]:
        """Values and their bounds, such that only its own flow crosses the link of a slot, and each slot is added at
        most once."""
        slots, routes = arrived[:, 0], arrived[:, 2 : 2 + LONGEST_ROUTE]
        yield room[self._shared :], 1, 1
        yield np.unique(slots, return_counts=True)[1], 1, 1
        for each, led in ((np.arange(len(self._routes)), self._routes), (slots, routes)):
            yield np.where(led >= self._shared, led - each[:, None], self._shared), self._shared, self._shared
        own = routes[routes >= self._shared].astype(np.int64)
        yield crossed[own], 0, 0

    def _taken_by(self, first: npt.NDArray[np.int64], crossed: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """The flows that cross any link."""
        places = [self._crossing[begin : begin + count] for begin, count in zip(first, crossed, strict=True)]
        return np.concatenate([self._crossing[:0], *places])


def max_min_rates(
    routes: Sequence[Sequence[int]],
    capacities: Sequence[float],
    return_routes: Sequence[Sequence[int]] = (),
    cross_traffic: float = 0.0,
    most: Sequence[float] = (),
    weights: Sequence[int] | None = None,
) -> list[float]:
    """The fair rate of each flow if these are all, in the unit of `capacities`.

    Flow f crosses the links `routes[f]`, and, if they are given, is bound to `most[f]` and has a weight `weights[f]`.
    """
    links = SharedLinks(capacities, cross_traffic, is_weighted=weights is not None)
    each = zip(
        routes, repeat(np.inf), chain(return_routes, repeat(())), chain(most, repeat(math.inf)), weights or repeat(1)
    )
    slots = [links.add(*flow) for flow in each]
    links.settle(0.0)
    rates: list[float] = links.rates(slots).tolist()
    return rates


def _longer(array: npt.NDArray[Any], length: int, fill: float) -> npt.NDArray[Any]:
    longer = np.full((length, *array.shape[1:]), fill, array.dtype)
    longer[: len(array)] = array
    return longer
