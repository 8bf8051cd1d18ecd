"""What holds of the path from one micro-cloud to another, and that each has one, of which all is stated."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property
from itertools import permutations
from typing import Any, Literal

from dlion_sim.errors import did_you_mean
from dlion_sim.scenario.faults import RuleError, listed
from dlion_sim.scenario.wan import ALL, MATRICES, Direction, Key, Place, Wan

_NEEDED: dict[Literal["bandwidth", "rtt"], tuple[str, str]] = {
    "bandwidth": (
        "how much the path from '{}' to '{}' carries",
        "bandwidth: 40 Mbps, for all paths or for this one; unlimited where only NICs limit it",
    ),
    "rtt": (
        "how long the path from '{}' to '{}' takes",
        "rtt: 60 ms, for all paths or for this one; 0 ms without latency",
    ),
}


class Paths:
    """The paths between clouds, by their names. Places in the WAN, of faults too, are keys from that on."""

    def __init__(self, clouds: Collection[str], wan: Wan) -> None:
        self._clouds = clouds
        self._wan = wan

    @cached_property
    def listed(self) -> Mapping[Direction, int]:
        """Which of the listed paths is of a direction, by number: one of both names goes before one of all."""
        found: dict[Direction, int] = {}
        for of_all in (True, False):
            for number, path in enumerate(self._wan.paths):
                if (ALL in path.ends) == of_all:
                    found |= dict.fromkeys(path.directions(self._clouds), number)
        return found

    def stated(self, key: Key, a: str, b: str) -> tuple[Place, Any] | None:
        """What is stated of the path from one cloud to another, and where; None if nothing is.

        A path of both names goes before a matrix, and that before one of all.
        """
        measured, number = self._wan.measured[key].get((a, b)), self.listed.get((a, b))
        if number is not None and (value := getattr(self._wan.paths[number], key)) is not None:
            of_path = ("paths", number, key), value
            return of_path if measured is None or ALL not in self._wan.paths[number].ends else measured
        if measured is not None:
            return measured
        value = getattr(self._wan, key)
        return None if value is None else ((key,), value)

    def check(self) -> None:
        """Raise RuleError for paths of no clouds, clouds without paths, and paths of which something is missing."""
        self._check_names()
        self._check_joined()
        for key in _NEEDED:
            self._check_stated(key)

    def is_complete(self, key: Literal["bandwidth", "rtt"]) -> bool:
        """Whether that is stated of every path."""
        stated_for_all = getattr(self._wan, key) is not None
        return stated_for_all or all(self.stated(key, a, b) for a, b in permutations(self._clouds, 2))

    def reads(self, place: Place) -> bool:
        """Whether the path of any direction reads something that stands at that place, or below it."""
        stated = (
            self.stated(key, a, b) for key in ("bandwidth", "rtt", "loss") for a, b in permutations(self._clouds, 2)
        )
        return any(found and found[0][: len(place)] == place for found in stated)

    def _check_names(self) -> None:
        listed_before: dict[bool, set[Direction]] = {True: set(), False: set()}
        for number, path in enumerate(self._wan.paths):
            at = ("paths", number)
            self._check_ends(path.ends, at)
            directions = set(path.directions(self._clouds))
            before = listed_before[ALL in path.ends]
            # What two paths of all clouds share must be listed by name.
            unnamed = {way for way in directions & before if ALL in self._wan.paths[self.listed[way]].ends}
            if doubled := sorted(unnamed if ALL in path.ends else directions & before):
                a, b = doubled[0]
                raise RuleError(f"a path from '{a}' to '{b}' stands already above", at=at)
            before |= directions
        for name in MATRICES.values():
            for a, row in (getattr(self._wan, name) or {}).items():
                for b in row:
                    self._check_ends((a, b), (name, a))

    def _check_ends(self, ends: Direction, at: Place) -> None:
        for name in ends:
            if name not in self._clouds and not (name == ALL and at[0] == "paths"):
                problem = f"there is no cloud '{name}'{did_you_mean(name, self._clouds)}"
                raise RuleError(problem, allowed=listed(self._clouds), at=at)
        if ends[0] == ends[1] != ALL:
            raise RuleError(f"the path leads from '{ends[0]}' to itself; inside a cloud the network is its lan", at=at)

    def _check_joined(self) -> None:
        if self._wan.joins_all:
            return
        joined = self.listed.keys() | self._wan.measured["bandwidth"].keys() | self._wan.measured["rtt"].keys()
        for a, b in permutations(self._clouds, 2):
            if (a, b) not in joined:
                raise RuleError(
                    f"the clouds are disconnected: no path leads from '{a}' to '{b}'; give wan.rtt for a path between "
                    f"all clouds, or list it in wan.paths, e.g. {{between: [{a}, {b}], rtt: 60 ms}}"
                )

    def _check_stated(self, key: Literal["bandwidth", "rtt"]) -> None:
        if self.is_complete(key):
            return
        a, b = next((a, b) for a, b in permutations(self._clouds, 2) if not self.stated(key, a, b))
        number = self.listed.get((a, b))
        what, allowed = _NEEDED[key]
        at = () if number is None else ("paths", number)
        raise RuleError(f"nothing says {what.format(a, b)}", allowed=allowed, at=at)
