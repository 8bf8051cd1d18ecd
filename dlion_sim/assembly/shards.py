"""The partition of training samples: held-out ones, and each worker's shard."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dlion_sim.errors import InputError
from dlion_sim.learning import Dataset, hold_out, partition
from dlion_sim.learning.partition import Indices, Place
from dlion_sim.scenario import Dirichlet, LabelShards, Owners, Scenario, named
from dlion_sim.scenario.faults import listed
from dlion_sim.streams import stream


def validation_of(scenario: Scenario, dataset: Dataset) -> Indices | None:
    """The training samples to evaluate on, if not the test set. Raises InputError if there would be none."""
    fraction = scenario.workload.validation
    return hold_out(classes_of(dataset), fraction, stream(scenario.seed, "validation")) if fraction else None


def classes_of(dataset: Dataset) -> Indices:
    """The class of each training sample; all of one class if the task has none."""
    return np.zeros(len(dataset.train_targets), np.int64) if dataset.labels is None else dataset.labels


def shards_of(scenario: Scenario, dataset: Dataset, validation: Indices | None) -> list[Indices]:
    """The training samples of each worker, without those for `validation`.

    Raises InputError if they are fewer than a batch, or the dataset lacks owners or classes for the partition.
    """
    spec = scenario.workload.partition
    labels, workers = _labels(scenario, dataset), len(scenario.cluster.workers)
    every = np.arange(len(labels))
    samples = every if validation is None else np.delete(every, validation)
    rng = stream(scenario.seed, "partition")
    parameters = spec.model_dump(exclude={"kind", "without"})
    if isinstance(spec, Owners):
        parameters["at"] = _places(spec, scenario, labels)
        samples = samples[~np.isin(labels[samples], spec.without or [])]
    parts = partition(spec.kind, labels[samples], workers, rng, **parameters)
    distinct = {id(part): part for part in parts}  # one for all workers, if they share the samples
    taken = {key: samples[part] for key, part in distinct.items()}
    shards = [taken[id(part)] for part in parts]
    smallest = min(map(len, shards))
    if scenario.workload.batch_size > smallest:
        raise InputError(
            f"{scenario.workload.batch_size} samples are more than the smallest of the workers' shards holds",
            path="batch_size",
            allowed=f"1 to {smallest}",
        )
    return shards


def _labels(scenario: Scenario, dataset: Dataset) -> Indices:
    """The labels that the partition is by: owners or classes."""
    spec = scenario.workload.partition
    if isinstance(spec, Owners):
        if dataset.owners is None:
            raise _cannot_part(scenario, "has no owners of its samples", "iid, shared")
        return dataset.owners.numpy()
    if isinstance(spec, Dirichlet | LabelShards) and dataset.labels is None:
        raise _cannot_part(scenario, f"has no classes, which {spec.kind} needs", "iid, owners, shared")
    return classes_of(dataset)


def owners_of(scenario: Scenario, dataset: Dataset, shards: Sequence[Indices]) -> list[dict[str, int]] | None:
    """The number of samples of each owner at each worker, by owner; None for other partitions."""
    if not isinstance(scenario.workload.partition, Owners) or dataset.owners is None:
        return None
    counted = [np.unique(dataset.owners.numpy()[shard], return_counts=True) for shard in shards]
    return [dict(zip(map(str, owners.tolist()), counts.tolist(), strict=True)) for owners, counts in counted]


def _places(spec: Owners, scenario: Scenario, owners: Indices) -> dict[str, Place]:
    """Owners and workers by the name of a place. Raises InputError for owners that do not exist."""
    sharing = spec.workers_at(scenario.cluster)
    existing = np.unique(owners).tolist()
    named_at = {f"at.{place}": held for place, held in (spec.at or {}).items()} | {"without": spec.without or []}
    for key, held in named_at.items():
        for owner in held:
            if owner not in existing:
                allowed = listed([*map(str, existing)])
                raise InputError(f"there is no owner {owner}", path=f"partition.{key}", allowed=allowed)
    return {place: Place(held, sharing[place]) for place, held in (spec.at or {}).items()}


def _cannot_part(scenario: Scenario, problem: str, allowed: str) -> InputError:
    return InputError(f"'{named(scenario.workload.dataset)[0]}' {problem}", path="partition", allowed=allowed)
