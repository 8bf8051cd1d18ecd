"""Who exchanges with whom."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from dlion_sim.scenario.machines import GIGABIT, Nic, Rented
from dlion_sim.scenario.model import Model


class AllToAll(Model):
    """Everyone exchanges with everyone."""

    kind: Literal["all_to_all"] = "all_to_all"


class Ring(Model):
    """Each worker exchanges with the one before it and the one after it."""

    kind: Literal["ring"] = "ring"


class Bipartite(Model):
    """Each worker of an even number exchanges with each of an odd one."""

    kind: Literal["bipartite"] = "bipartite"


class Torus(Model):
    """Each worker exchanges with four neighbours on a grid, closed at its sides, that is as square as can be."""

    kind: Literal["torus"] = "torus"


class Exponential(Model):
    """Each worker exchanges with those 1, 2, 4, 8, ... places after and before it."""

    kind: Literal["exponential"] = "exponential"


class Regular(Model):
    """Workers exchange with their neighbours in a random graph, in which all have equally many."""

    kind: Literal["regular"] = "regular"
    degree: Annotated[int, Field(ge=1)] = 3
    """How many neighbours each has."""


class SmallWorld(Model):
    """Workers exchange along a ring of near neighbours, with some links moved at random (Watts and Strogatz, 1998).

    However these are moved, all workers stay connected.
    """

    kind: Literal["small_world"] = "small_world"
    neighbours: Annotated[int, Field(ge=2)] = 4
    """How many neighbours each has on the ring, before links are moved."""
    rewiring: Annotated[float, Field(ge=0, le=1)] = 0.1
    """Probability that a link is moved."""


class Edges(Model):
    """Workers exchange along the given links."""

    kind: Literal["edges"] = "edges"
    edges: Annotated[list[Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=2, max_length=2)]], Field()]
    """The links: pairs of workers' numbers."""


class ServerHost(Rented):
    """A machine for a parameter server alone."""

    cloud: str
    """The micro-cloud that it is in."""
    nic: Nic = GIGABIT
    """How fast it sends and receives."""


def _first_worker() -> list[int | ServerHost]:
    return [0]


class ParameterServers(Model):
    """Everyone exchanges with the parameter servers, each of which holds an equal part of the parameters."""

    kind: Literal["parameter_server"] = "parameter_server"
    hosts: Annotated[list[Annotated[int, Field(ge=0)] | ServerHost], Field(min_length=1)] = Field(
        default_factory=_first_worker
    )
    """Where each server is: the number of the worker whose machine and NIC it shares, or a machine of its own."""


AnyTopology = AllToAll | Ring | Bipartite | Torus | Exponential | Regular | SmallWorld | Edges | ParameterServers
Topology = Annotated[
    Annotated[AnyTopology, Field(discriminator="kind")],
    BeforeValidator(
        lambda given: {"kind": given} if isinstance(given, str) else given,
        json_schema_input_type=Literal[
            "all_to_all", "ring", "bipartite", "torus", "exponential", "regular", "small_world", "parameter_server"
        ]
        | AnyTopology,
    ),
]
