"""The network between micro-clouds: what a scenario states for all paths, for some, and for single directions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from dlion_sim.scenario.capacity import PathBandwidth
from dlion_sim.scenario.faults import RuleError
from dlion_sim.scenario.matrix import BandwidthMatrix, RttMatrix
from dlion_sim.scenario.model import Model
from dlion_sim.scenario.units import Duration

Direction = tuple[str, str]
"""Sending and receiving cloud."""
Key = Literal["bandwidth", "rtt", "loss"]
Place = tuple[str | int, ...]
"""Keys from the WAN on."""
ALL = "*"
"""Stands for every other cloud at one end of a path."""
MATRICES: dict[Key, str] = {"bandwidth": "matrix", "rtt": "rtt_matrix"}
"""Which matrix has what."""
Loss = Annotated[float, Field(ge=0, lt=1)]
"""Part of packets that are lost."""


class WanPath(Model):
    """The path between two micro-clouds; what it omits is the WAN's. "*" stands for every other cloud, whose path with
    this one is not listed by both names."""

    between: Annotated[list[str], Field(min_length=2, max_length=2)] | None = None
    """Two clouds; the path is the same in both directions, each with its own bandwidth."""
    source: str | None = Field(default=None, alias="from")
    """The cloud that sends, where the path is of one direction."""
    target: str | None = Field(default=None, alias="to")
    """The cloud that receives, where the path is of one direction."""
    bandwidth: PathBandwidth | None = None
    """Bandwidth in each direction, or `unlimited`; by default the WAN's, which then has to state one."""
    rtt: Duration | None = None
    """Round-trip time; by default the WAN's, which then has to state one."""
    loss: Loss | None = None
    """Part of the packets that are lost; by default the WAN's."""

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
        """The two clouds as they are written."""
        one, other = self.between or [self.source or "", self.target or ""]
        return one, other

    def directions(self, clouds: Collection[str]) -> Iterator[Direction]:
        """Each direction that it is of, among these clouds."""
        one, other = self.ends
        for a in clouds if one == ALL else (one,):
            for b in clouds if other == ALL else (other,):
                if a != b or ALL not in self.ends:
                    yield a, b
                    if self.between:
                        yield b, a


class Wan(Model):
    """The network between micro-clouds. A bandwidth or an RTT here gives every two clouds a path."""

    bandwidth: PathBandwidth | None = None
    """Bandwidth of each path in each direction, shared by all that crosses it; or `unlimited`, where only NICs limit
    it. By default every path states its own."""
    rtt: Duration | None = None
    """Round-trip time of each path, 0 ms where there is no latency. By default every path states its own."""
    loss: Loss | None = None
    """Part of the packets that are lost on each path, by default none. It bounds a connection's window by 1448 bytes
    times sqrt(3/2 / loss) (Mathis et al., 1997), in simulations with `network: {tcp: window}`; with `network: {model:
    packets}` they are lost one by one."""
    matrix: BandwidthMatrix | None = None
    """Bandwidths that differ from that one, by sending and then by receiving cloud: {east: {west: 40 Mbps}}; or a CSV
    file or a folder of iperf3's results that has them, and is read when the scenario is."""
    rtt_matrix: RttMatrix | None = None
    """Round-trip times that differ from `rtt`, likewise: {east: {west: 60 ms}}, a CSV file, or a folder of iperf3's
    results. One is that of both directions, where the other is not there."""
    paths: list[WanPath] = Field(default_factory=list)
    """Paths that differ from all that; or every path, where nothing else is stated. A path of two names goes before a
    matrix, a matrix before a path with "*", and that before what is stated of all."""

    @property
    def joins_all(self) -> bool:
        """Whether every two clouds have a path, listed or not."""
        return self.bandwidth is not None or self.rtt is not None

    @cached_property
    def measured(self) -> Mapping[Key, Mapping[Direction, tuple[Place, Any]]]:
        """The matrices' values of each direction, and where they stand."""
        told: dict[Key, dict[Direction, tuple[Place, Any]]] = {"loss": {}}
        for key, name in MATRICES.items():
            rows = getattr(self, name) or {}
            told[key] = {(a, b): ((name, a, b), value) for a, row in rows.items() for b, value in row.items()}
        told["rtt"] = {**{(b, a): value for (a, b), value in told["rtt"].items()}, **told["rtt"]}
        return told
