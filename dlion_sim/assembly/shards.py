"""Which of the training samples are held out, and which lie at which worker, as a scenario says."""

from __future__ import annotations

import numpy as np

from dlion_sim.errors import InputError
from dlion_sim.learning import Dataset, hold_out, partition
from dlion_sim.learning.partition import Indices
from dlion_sim.scenario import Scenario
from dlion_sim.streams import stream


def validation_of(scenario: Scenario, dataset: Dataset) -> Indices | None:
    """The training samples to evaluate on, if not the test set. Raises InputError where they would be none."""
    fraction = scenario.workload.validation
    labels = dataset.train_labels.numpy()
    return hold_out(labels, fraction, stream(scenario.seed, "validation")) if fraction else None


def shards_of(scenario: Scenario, dataset: Dataset, validation: Indices | None) -> list[Indices]:
    """The training samples of each worker, without those for `validation`.

    Raises InputError where they are fewer than a batch.
    """
    spec = scenario.workload.partition
    labels, workers = dataset.train_labels.numpy(), len(scenario.cluster.workers)
    every = np.arange(len(labels))
    samples = every if validation is None else np.delete(every, validation)
    rng = stream(scenario.seed, "partition")
    parts = partition(spec.kind, labels[samples], workers, rng, **spec.model_dump(exclude={"kind"}))
    shards = [samples[part] for part in parts]
    smallest = min(map(len, shards))
    if scenario.workload.batch_size > smallest:
        raise InputError(
            f"{scenario.workload.batch_size} samples are more than the smallest of the workers' shards holds",
            path="batch_size",
            allowed=f"1 to {smallest}",
        )
    return shards
