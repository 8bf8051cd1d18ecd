"""A run's samples as a stream: which come to whom when, and what they are like then."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from dlion_sim.assembly.arrivals import Arrivals, arrival_times, by_class
from dlion_sim.assembly.drift import Drift
from dlion_sim.assembly.sampling import StreamSampler
from dlion_sim.errors import InputError
from dlion_sim.learning import Dataset, Newest, Reservoir, class_histogram
from dlion_sim.learning.partition import Indices
from dlion_sim.learning.tasks import Classification
from dlion_sim.scenario import LabelShift, LateClass, Scenario, Stream, named
from dlion_sim.streams import stream


@dataclass(frozen=True)
class DataStream:
    """What comes to each worker, and how that changes."""

    spec: Stream
    seed: int
    dataset: Dataset
    """Whose training inputs are as they come."""
    drift: Drift
    arrivals: Sequence[Arrivals]
    """To each worker."""

    @classmethod
    def of(cls, scenario: Scenario, dataset: Dataset, shards: Sequence[Indices]) -> DataStream | None:
        """That of a scenario, if it has one, to workers with such shards. Raises InputError where it cannot be."""
        spec = scenario.workload.stream
        if spec is None:
            return None
        labels = _checked_labels(scenario, dataset, spec, shards)
        clouds = [worker.cloud for worker in scenario.cluster.workers]
        drift = Drift(spec, clouds, class_histogram(labels, shards, dataset.task.outputs), dataset.train_inputs)
        arrivals = [_arrivals(scenario, spec, drift, labels, worker, shard) for worker, shard in enumerate(shards)]
        return cls(spec, scenario.seed, _as_it_comes(dataset, drift, arrivals), drift, arrivals)

    @property
    def shards(self) -> Sequence[Indices]:
        """All samples that come to each worker."""
        return [each.samples for each in self.arrivals]

    @property
    def changes(self) -> list[dict[str, Any]]:
        """What changes when, as the manifest tells it."""
        spans = [(each.what, *each.span) for each in self.spec.drift]
        return [{"what": what, "begin": begin, "end": end} for what, begin, end in spans]

    def most_kept(self, worker: int) -> int:
        """Samples that a worker has to train on at most."""
        come, most = len(self.arrivals[worker].samples), self.spec.keep.most
        return come if most is None else min(come, most)

    def sampler(self, worker: int, rng: np.random.Generator) -> StreamSampler:
        """Which samples a worker takes next, by a random stream for its batches."""
        keep = self.spec.keep
        kept = (
            Newest(keep.window)
            if keep.reservoir is None
            else Reservoir(keep.reservoir, stream(self.seed, "reservoir", worker))
        )
        return StreamSampler(self.arrivals[worker], kept, rng)


def _checked_labels(scenario: Scenario, dataset: Dataset, spec: Stream, shards: Sequence[Indices]) -> Indices:
    """The class of each training sample. Raises InputError for a stream that these data, or this run, cannot have."""
    name, batch = named(scenario.workload.dataset)[0], scenario.workload.batch_size
    if dataset.labels is None or not isinstance(dataset.task, Classification):
        raise InputError(f"'{name}' has no classes, by which a stream is tested", path="stream", allowed="null")
    smallest = min(map(len, shards))
    if not batch <= spec.initial <= smallest:
        problem = (
            f"{spec.initial} samples are fewer than a batch, or more than the smallest of the workers' shards holds"
        )
        raise InputError(problem, path="stream.initial", allowed=f"{batch} to {smallest}")
    if spec.keep.most is not None and spec.keep.most < batch:
        problem = f"{spec.keep.most} samples are fewer than a batch"
        raise InputError(problem, path="stream.keep", allowed=f"{batch} or more")
    workers = scenario.cluster.workers
    clouds = list(dict.fromkeys(worker.cloud for worker in workers))
    places = {*clouds, *(worker.name for worker in workers)}
    for place in spec.arrivals.of:
        if place not in places:
            problem = f"there is no micro-cloud or worker '{place}'"
            raise InputError(problem, path="stream.arrivals.of", allowed=f"{', '.join(clouds)}, or a worker of these")
    for number, change in spec.of_classes:
        _check_classes(change, f"stream.drift.{number}", dataset.task.classes, clouds)
        if scenario.duration is None:
            problem = "whether there are samples enough cannot be told without a duration"
            raise InputError(problem, path=f"stream.drift.{number}", allowed="a scenario with a duration")
    if spec.of_inputs and (dataset.input_kind != "images" or dataset.train_inputs.dim() != 4):
        number, of_images = spec.of_inputs[0]
        problem = f"'{name}' has no images, which {of_images.kind} is of"
        raise InputError(problem, path=f"stream.drift.{number}", allowed="label_shift, late_class")
    return dataset.labels


def _check_classes(change: LabelShift | LateClass, path: str, classes: int, clouds: Sequence[str]) -> None:
    for number in change.changing:
        if number >= classes:
            raise InputError(f"there is no class {number}", path=path, allowed=f"0 to {classes - 1}")
    for cloud in change.clouds:
        if cloud not in clouds:
            raise InputError(f"there is no cloud '{cloud}'", path=f"{path}.clouds", allowed=", ".join(clouds))


def _arrivals(scenario: Scenario, spec: Stream, drift: Drift, labels: Indices, worker: int, shard: Indices) -> Arrivals:
    place = scenario.cluster.workers[worker]
    rate = spec.arrivals.at(place.cloud, place.name)
    later = arrival_times(rate, len(shard) - spec.initial, scenario.duration or math.inf)
    times = np.concatenate([np.zeros(spec.initial), later])
    rng = stream(scenario.seed, "arrivals", worker)
    if not spec.of_classes:
        return Arrivals(rng.permutation(shard)[: len(times)], times, spec.initial)
    members = [shard[labels[shard] == number] for number in range(labels.max() + 1)]
    try:
        samples = by_class(members, times, lambda times: drift.shares(worker, times), rng)
    except InputError as error:
        problem = f"at worker {place.name} {error.problem}"
        raise InputError(problem, path="stream.drift", allowed=error.allowed) from None
    return Arrivals(samples, times, spec.initial)


def _as_it_comes(dataset: Dataset, drift: Drift, arrivals: Sequence[Arrivals]) -> Dataset:
    """The data with each training input as it is when it comes; no two workers share one."""
    samples = np.concatenate([each.samples for each in arrivals])
    times = np.concatenate([each.times for each in arrivals])
    indices = torch.from_numpy(samples)
    before = dataset.train_inputs[indices]
    after = drift.changed(before, times)
    if after is before:
        return dataset
    inputs = dataset.train_inputs.clone()
    inputs[indices] = after
    return replace(dataset, train_inputs=inputs)
