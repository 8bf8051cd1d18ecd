"""Which of the training samples are held out, and which lie at which worker, as a scenario says."""

from __future__ import annotations

import numpy as np

from dlion_sim.errors import InputError
from dlion_sim.learning import Dataset, hold_out, partition
from dlion_sim.learning.partition import Indices
from dlion_sim.scenario import Dirichlet, LabelShards, Owners, Scenario, named
from dlion_sim.streams import stream


def validation_of(scenario: Scenario, dataset: Dataset) -> Indices | None:
    """The training samples to evaluate on, if not the test set. Raises InputError where they would be none."""
    fraction = scenario.workload.validation
    return hold_out(classes_of(dataset), fraction, stream(scenario.seed, "validation")) if fraction else None


def classes_of(dataset: Dataset) -> Indices:
    """The class of each training sample; all are of one where the task is about none."""
    return np.zeros(len(dataset.train_targets), np.int64) if dataset.labels is None else dataset.labels


def shards_of(scenario: Scenario, dataset: Dataset, validation: Indices | None) -> list[Indices]:
    """The training samples of each worker, without those for `validation`.

    Raises InputError where they are fewer than a batch, or the dataset does not tell by what to part them.
    """
    spec = scenario.workload.partition
    labels, workers = _labels(scenario, dataset), len(scenario.cluster.workers)
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


def _labels(scenario: Scenario, dataset: Dataset) -> Indices:
    """By what the training samples are parted: their owners, or their classes if that matters."""
    spec = scenario.workload.partition
    if isinstance(spec, Owners):
        if dataset.owners is None:
            raise _cannot_part(scenario, "tells no owners of its samples", "iid, shared")
        return dataset.owners.numpy()
    if isinstance(spec, Dirichlet | LabelShards) and dataset.labels is None:
        raise _cannot_part(scenario, f"has no classes, by which {spec.kind} parts", "iid, owners, shared")
    return classes_of(dataset)


def _cannot_part(scenario: Scenario, problem: str, allowed: str) -> InputError:
    return InputError(f"'{named(scenario.workload.dataset)[0]}' {problem}", path="partition", allowed=allowed)
