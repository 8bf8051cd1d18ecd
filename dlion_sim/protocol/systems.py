"""The named systems, each a composition of four choices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# Importing a folder of choices registers them.
from dlion_sim.protocol import batching, exchange, knowledge, synchronization  # noqa: F401
from dlion_sim.protocol.choices import CATEGORIES
from dlion_sim.scenario.topology import AllToAll, AnyTopology, Bipartite, ParameterServers, Ring


@dataclass(frozen=True)
class Composition:
    """A system: where it is from, and its four choices, each its kind and what differs from that kind's defaults."""

    source: str
    batching: Mapping[str, Any]
    exchange: Mapping[str, Any]
    synchronization: Mapping[str, Any]
    knowledge_transfer: Mapping[str, Any]
    topology: AnyTopology = field(default_factory=AllToAll)

    @property
    def choices(self) -> Mapping[str, Mapping[str, Any]]:
        """The four by category."""
        return {category: getattr(self, category) for category in CATEGORIES}


SYSTEMS: Mapping[str, Composition] = {
    "baseline": Composition(
        source="Whole gradients to everyone, in step",
        batching={"kind": "fixed"},
        exchange={"kind": "full"},
        synchronization={"kind": "synchronous"},
        knowledge_transfer={"kind": "none"},
    ),
    "ako": Composition(
        source="Watcharapichat et al., SoCC'16",
        batching={"kind": "fixed"},
        exchange={"kind": "partitions"},
        synchronization={"kind": "asynchronous"},
        knowledge_transfer={"kind": "none"},
    ),
    # Sparse in data, synchronous in clocks.
    "gaia": Composition(
        source="Hsieh et al., NSDI'17",
        batching={"kind": "fixed"},
        exchange={"kind": "significance"},
        synchronization={"kind": "bounded_staleness", "staleness": 0},
        knowledge_transfer={"kind": "none"},
    ),
    # Exchanging gradients, as in DLion's comparison, where the original exchanges parameters.
    "hop": Composition(
        source="Luo et al., ASPLOS'19",
        batching={"kind": "fixed"},
        exchange={"kind": "full"},
        synchronization={"kind": "hop"},
        knowledge_transfer={"kind": "none"},
    ),
    "dpsgd": Composition(
        source="Lian et al., NeurIPS'17",
        batching={"kind": "fixed"},
        exchange={"kind": "parameters"},
        synchronization={"kind": "synchronous"},
        knowledge_transfer={"kind": "none"},
        topology=Ring(),
    ),
    "adpsgd": Composition(
        source="Lian et al., ICML'18",
        batching={"kind": "fixed"},
        exchange={"kind": "pairwise"},
        synchronization={"kind": "asynchronous"},
        knowledge_transfer={"kind": "none"},
        topology=Bipartite(),
    ),
    "parameter_server": Composition(
        source="Li et al., OSDI'14",
        batching={"kind": "fixed"},
        exchange={"kind": "parameter_server"},
        synchronization={"kind": "synchronous"},
        knowledge_transfer={"kind": "none"},
        topology=ParameterServers(),
    ),
    # The exchange is its own barrier.
    "ring_allreduce": Composition(
        source="Patarasuk & Yuan, 2009",
        batching={"kind": "fixed"},
        exchange={"kind": "ring_allreduce"},
        synchronization={"kind": "asynchronous"},
        knowledge_transfer={"kind": "none"},
    ),
    "local_sgd": Composition(
        source="Stich, ICLR'19",
        batching={"kind": "fixed"},
        exchange={"kind": "local_sgd"},
        synchronization={"kind": "synchronous"},
        knowledge_transfer={"kind": "none"},
    ),
    "diloco": Composition(
        source="Douillard et al., 2023",
        batching={"kind": "fixed"},
        exchange={"kind": "diloco"},
        synchronization={"kind": "synchronous"},
        knowledge_transfer={"kind": "none"},
    ),
    # Which synchronization its results used is not known; a bound of 5 works everywhere.
    "dlion": Composition(
        source="Hong & Chandra, HPDC'21",
        batching={"kind": "weighted_dynamic"},
        exchange={"kind": "max_n"},
        synchronization={"kind": "bounded_staleness", "staleness": 5},
        knowledge_transfer={"kind": "direct"},
    ),
}
