"""The network between micro-clouds: bandwidth, RTT and loss for all paths, for some, and for single directions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from itertools import permutations
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from dlion_sim.scenario.capacity import PathBandwidth
from dlion_sim.scenario.faults import RuleError, no_such
from dlion_sim.scenario.matrix import BandwidthMatrix, RttMatrix
from dlion_sim.scenario.model import Model
from dlion_sim.scenario.units import Duration

Direction = tuple[str, str]
"""Sending and receiving cloud."""
Key = Literal["bandwidth", "rtt", "loss"]
Place = tuple[str | int, ...]
"""Keys from the WAN on."""
ALL = "*"
"""Every other cloud, at one end of a path."""
MATRICES: dict[Key, str] = {"bandwidth": "matrix", "rtt": "rtt_matrix"}
"""The matrix of each key."""
Loss = Annotated[float, Field(ge=0, lt=1)]
"""Share of packets that are lost."""


class WanPath(Model):
    """The path between two micro-clouds; omitted keys are the WAN's. "*" means all other clouds without a path of two
    names to this one."""

    between: Annotated[list[str], Field(min_length=2, max_length=2)] | None = None
    """Two clouds, for both directions, each with its own bandwidth."""
    source: str | None = Field(default=None, alias="from")
    """Sending cloud, for one direction."""
    target: str | None = Field(default=None, alias="to")
    """Receiving cloud, for one direction."""
    bandwidth: PathBandwidth | None = None
    """Bandwidth in each direction."""
    rtt: Duration | None = None
    """Its round-trip time."""
    loss: Loss | None = None
    """Share of packets lost."""

    @model_validator(mode="after")
    def _has_two_ends(self) -> Self:
        one_way = [self.source, self.target]
        if (self.between is None) == (one_way == [None, None]) or (self.between is None and None in one_way):
            raise RuleError(
                "a path names its clouds either as 'between: [a, b]' (both directions) or as 'from: a, to: b'"
            )
        return self

    @property
    def ends(self) -> Direction:
        """The two clouds as written."""
        one, other = self.between or [self.source or "", self.target or ""]
        return one, other

    def directions(self, clouds: Collection[str]) -> Iterator[Direction]:
        """Its directions among these clouds."""
        one, other = self.ends
        for a in clouds if one == ALL else (one,):
            for b in clouds if other == ALL else (other,):
                if a != b or ALL not in self.ends:
                    yield a, b
                    if self.between:
                        yield b, a


class Wan(Model):
    """The network between micro-clouds. With a bandwidth or an RTT here, every two clouds have a path."""

    bandwidth: PathBandwidth | None = None
    """Bandwidth of each path in each direction. By default every path has its own."""
    rtt: Duration | None = None
    """Round-trip time of each path. By default every path has its own."""
    loss: Loss | None = None
    """Share of packets lost on each path. With `network: {tcp: window}` it limits a window to 1448 bytes times sqrt(3/2
    / loss) (Mathis et al., 1997); with `network: {model: packets}` single packets are lost."""
    matrix: BandwidthMatrix | None = None
    """Bandwidths by sending and receiving cloud: {east: {west: 40 Mbps}}, a CSV file, or a folder of iperf3 results."""
    rtt_matrix: RttMatrix | None = None
    """Round-trip times likewise: {east: {west: 60 ms}}, a CSV file, or a folder. One direction is enough."""
    paths: list[WanPath] = Field(default_factory=list)
    """Settings of single paths. Precedence: a path of two names, a matrix, a path with "*", the WAN's value."""

    @property
    def joins_all(self) -> bool:
        """Whether every two clouds have a path without being listed."""
        return self.bandwidth is not None or self.rtt is not None

    @cached_property
    def measured(self) -> Mapping[Key, Mapping[Direction, tuple[Place, Any]]]:
        """The matrices' values by direction, with their places."""
        told: dict[Key, dict[Direction, tuple[Place, Any]]] = {"loss": {}}
        for key, name in MATRICES.items():
            rows = getattr(self, name) or {}
            told[key] = {(a, b): ((name, a, b), value) for a, row in rows.items() for b, value in row.items()}
        told["rtt"] = {**{(b, a): value for (a, b), value in told["rtt"].items()}, **told["rtt"]}
        return told


_NEEDED: dict[Literal["bandwidth", "rtt"], tuple[str, str]] = {
    "bandwidth": (
        "bandwidth",
        "bandwidth: 40 Mbps, for all paths or for this one; or unlimited",
    ),
    "rtt": (
        "round-trip time",
        "rtt: 60 ms, for all paths or for this one; or 0 ms",
    ),
}


class Paths:
    """The paths between clouds. Places, of faults too, are keys from the WAN on."""

    def __init__(self, clouds: Collection[str], wan: Wan) -> None:
        self._clouds = clouds
        self._wan = wan

    @cached_property
    def listed(self) -> Mapping[Direction, int]:
        """Number of the listed path of each direction: one with both names takes precedence over "*"."""
        found: dict[Direction, int] = {}
        for of_all in (True, False):
            for number, path in enumerate(self._wan.paths):
                if (ALL in path.ends) == of_all:
                    found |= dict.fromkeys(path.directions(self._clouds), number)
        return found

    def stated(self, key: Key, a: str, b: str) -> tuple[Place, Any] | None:
        """The value of a path from one cloud to another, with its place; None without one.

        Precedence: a listed path with both names, a matrix, a listed path with "*", the WAN's value.
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
        """Raise RuleError for paths of unknown clouds, clouds without paths, and incomplete paths."""
        self._check_names()
        self._check_joined()
        for key in _NEEDED:
            self._check_stated(key)

    def is_complete(self, key: Literal["bandwidth", "rtt"]) -> bool:
        """Whether every path has that value."""
        stated_for_all = getattr(self._wan, key) is not None
        return stated_for_all or all(self.stated(key, a, b) for a, b in permutations(self._clouds, 2))

    def reads(self, place: Place) -> bool:
        """Whether any path uses a value at or below that place."""
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
            # Directions of two paths with "*" must be listed by name.
            unnamed = {way for way in directions & before if ALL in self._wan.paths[self.listed[way]].ends}
            if doubled := sorted(unnamed if ALL in path.ends else directions & before):
                a, b = doubled[0]
                raise RuleError(f"a path from '{a}' to '{b}' is listed already", at=at)
            before |= directions
        for name in MATRICES.values():
            for a, row in (getattr(self._wan, name) or {}).items():
                for b in row:
                    self._check_ends((a, b), (name, a))

    def _check_ends(self, ends: Direction, at: Place) -> None:
        for name in ends:
            if name not in self._clouds and not (name == ALL and at[0] == "paths"):
                raise no_such("cloud", name, self._clouds, at)
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
        raise RuleError(f"the path from '{a}' to '{b}' has no {what}", allowed=allowed, at=at)
