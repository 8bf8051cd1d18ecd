"""Which of the training samples lie at which worker, as a scenario says."""

from __future__ import annotations

from dlion_sim.errors import InputError
from dlion_sim.learning import Dataset, partition
from dlion_sim.learning.partition import Indices
from dlion_sim.scenario import Scenario
from dlion_sim.streams import stream


def shards_of(scenario: Scenario, dataset: Dataset) -> list[Indices]:
    """The training samples of each worker. Raises InputError where they are fewer than a batch."""
    spec = scenario.workload.partition
    labels, workers = dataset.train_labels.numpy(), len(scenario.cluster.workers)
    rng = stream(scenario.seed, "partition")
    shards = partition(spec.kind, labels, workers, rng, **spec.model_dump(exclude={"kind"}))
    smallest = min(map(len, shards))
    if scenario.workload.batch_size > smallest:
        raise InputError(
            f"{scenario.workload.batch_size} samples are more than the smallest of the workers' shards holds",
            path="workload.batch_size",
            allowed=f"1 to {smallest}",
        )
    return shards
