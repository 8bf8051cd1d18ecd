"""The named systems, each a composition of four choices."""

from __future__ import annotations

from dlion_sim.protocol import (
    baseline,  # noqa: F401 (it registers its choices)
    batching,
    exchange,
    knowledge,
    synchronization,
)
from dlion_sim.protocol.registry import SYSTEMS, Composition, discover, register
from dlion_sim.scenario.system import Bipartite, ParameterServers, Ring

__all__ = ["SYSTEMS", "Composition", "register"]

SYSTEMS |= {
    "baseline": Composition(
        source="Whole gradients to every peer, synchronously",
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
    # The best of what was composed, by validation accuracy in environments other than those that it is tested in.
    "dlion_sparse": Composition(
        source="dlion_sim: DLion's batches, and the largest of what peers lack",
        batching={"kind": "weighted_dynamic", "weights": "share", "growth": "none"},
        exchange={"kind": "top_k", "density": 0.0003},
        synchronization={"kind": "bounded_staleness", "staleness": 5},
        knowledge_transfer={"kind": "none"},
    ),
}

for package in (batching, exchange, synchronization, knowledge):
    discover(package)
