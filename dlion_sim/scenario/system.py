"""The training system: a named composition of four choices, and the topology."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_serializer

from dlion_sim.scenario.machines import GIGABIT, Nic, Rented
from dlion_sim.scenario.model import Model, ShortForm, or_name


class AllToAll(Model):
    """Every worker exchanges with all others."""

    kind: Literal["all_to_all"] = "all_to_all"


class Ring(Model):
    """Each worker exchanges with its predecessor and successor."""

    kind: Literal["ring"] = "ring"


class Bipartite(Model):
    """Each even-numbered worker exchanges with each odd-numbered one."""

    kind: Literal["bipartite"] = "bipartite"


class Torus(Model):
    """Each worker exchanges with four neighbours on a torus that is as square as possible."""

    kind: Literal["torus"] = "torus"


class Exponential(Model):
    """Each worker exchanges with those at distance 1, 2, 4, 8, ... in both directions."""

    kind: Literal["exponential"] = "exponential"


class Regular(Model):
    """Workers exchange with their neighbours in a random regular graph."""

    kind: Literal["regular"] = "regular"
    degree: Annotated[int, Field(ge=1)] = 3
    """Neighbours of each worker."""


class SmallWorld(Model):
    """Workers exchange along a ring of near neighbours, with some links rewired at random (Watts and Strogatz, 1998).

    All workers stay connected.
    """

    kind: Literal["small_world"] = "small_world"
    neighbours: Annotated[int, Field(ge=2)] = 4
    """Neighbours of each worker on the ring, before rewiring."""
    rewiring: Annotated[float, Field(ge=0, le=1)] = 0.1
    """Probability that a link is rewired."""


class Edges(Model):
    """Workers exchange along given links."""

    kind: Literal["edges"] = "edges"
    edges: Annotated[list[Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=2, max_length=2)]], Field()]
    """The links, as pairs of worker numbers."""


class ServerHost(Rented):
    """A machine of a parameter server without a worker."""

    cloud: str
    """Its micro-cloud."""
    nic: Nic = GIGABIT
    """Its bandwidths."""


def _first_worker() -> list[int | ServerHost]:
    return [0]


class ParameterServers(Model):
    """Workers exchange with parameter servers, each of which has an equal part of the parameters."""

    kind: Literal["parameter_server"] = "parameter_server"
    hosts: Annotated[list[Annotated[int, Field(ge=0)] | ServerHost], Field(min_length=1)] = Field(
        default_factory=_first_worker
    )
    """Host of each server: a worker's number, or a machine of its own."""


AnyTopology = AllToAll | Ring | Bipartite | Torus | Exponential | Regular | SmallWorld | Edges | ParameterServers
Topology = Annotated[Annotated[AnyTopology, Field(discriminator="kind")], or_name(AnyTopology)]


def hosts_of(topology: AnyTopology | None) -> Sequence[int | ServerHost]:
    """The hosts of parameter servers, if any: a worker, by number, or a machine of its own."""
    return topology.hosts if isinstance(topology, ParameterServers) else ()


def machines_of(workers: int, hosts: Iterable[int | ServerHost]) -> list[int]:
    """The machine of each participant, by number: of workers their own, of servers the host's or the next one."""
    following = count(workers)
    return [*range(workers), *(next(following) if isinstance(host, ServerHost) else host for host in hosts)]


class ChoiceSpec(ShortForm):
    """One of a system's four choices: its kind, or a mapping of `kind` and the kind's parameters."""

    short_form: ClassVar[dict[str, Any]] = {"type": ["string", "object"], "properties": {"kind": {"type": "string"}}}

    kind: str | None = None
    """Name of the choice; by default the system's."""
    parameters: dict[str, Any] = Field(default_factory=dict)
    """Parameters, which the choice checks."""

    @classmethod
    def expand(cls, given: object) -> object:
        if isinstance(given, str):
            return {"kind": given}
        if not isinstance(given, Mapping) or (set(given) <= {"kind", "parameters"} and "parameters" in given):
            return given
        return {"kind": given.get("kind"), "parameters": {key: given[key] for key in given if key != "kind"}}

    @model_serializer
    def _write(self) -> str | dict[str, Any]:
        if self.kind is None:
            return self.parameters
        return {"kind": self.kind, **self.parameters} if self.parameters else self.kind


class SystemSpec(ShortForm):
    """A training system; its plain name is short for {name: ...}."""

    name: str
    """Name of the composition, e.g. dlion, baseline, ako, gaia or hop."""
    batching: ChoiceSpec | None = None
    """Batch sizes. By default, here and below, the system's own choice."""
    exchange: ChoiceSpec | None = None
    """What workers send to whom."""
    synchronization: ChoiceSpec | None = None
    """When a worker starts its next iteration."""
    knowledge_transfer: ChoiceSpec | None = None
    """Whose parameters are merged."""
    topology: Topology | None = None
    """Which workers exchange; a plain name is short for {kind: name}."""

    @classmethod
    def expand(cls, given: object) -> object:
        return {"name": given} if isinstance(given, str) else given
