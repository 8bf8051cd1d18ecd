"""A run's samples as a stream: their arrival at workers, and their drift."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dlion_sim.assembly.arrivals import Arrivals, Floats, StreamSampler, arrival_times, by_class
from dlion_sim.errors import InputError
from dlion_sim.learning import Dataset, Moment, Newest, Reservoir, class_histogram
from dlion_sim.learning.moment import changed
from dlion_sim.learning.partition import Indices
from dlion_sim.learning.tasks import Classification
from dlion_sim.scenario import Brightness, LabelShift, LateClass, Rotation, Scenario, Stream, named
from dlion_sim.streams import stream

_IMAGES = 5000
"""Images that are changed together, as floats."""


class Drift:
    """How a `stream` changes, of workers in these `clouds`, one each, whose shards are `counts` [workers, classes].

    `images` [N, C, H, W] have the range that brighter ones stay in; others than images only where none change.
    """

    def __init__(self, stream: Stream, clouds: Sequence[str], counts: Sequence[Sequence[int]], images: Tensor) -> None:
        self._of_classes = [each for _, each in stream.of_classes]
        self._of_inputs = [each for _, each in stream.of_inputs]
        self._clouds = clouds
        self._counts = np.array(counts, np.float64)
        self._range = float(images.min()), float(images.max())

    def shares(self, worker: int, times: Floats) -> Floats:
        """The shares of classes among arrivals at a worker at some times (s) [N]: [N, classes]; 0 where none may
        arrive."""
        weights = np.tile(self._counts[worker], (len(times), 1))
        for change in self._of_classes:
            if change.concerns(self._clouds[worker]):
                weights[:, sorted(set(change.changing))] *= change.weight_at(times)[:, None]
        sums = weights.sum(axis=1, keepdims=True)
        shares: Floats = weights / np.where(sums > 0, sums, 1.0)
        return shares

    def moment(self, now: float) -> Moment:
        """The test distribution at a time (s): mean shares of classes over the workers, and inputs as at that time."""
        times = np.array([now])
        shares = np.mean([self.shares(worker, times)[0] for worker in range(len(self._counts))], axis=0)
        return Moment(shares, partial(self._at, now))

    def changed(self, images: Tensor, times: Floats) -> Tensor:
        """Inputs as they are at some times (s) [N]; the same object if inputs do not drift."""
        if not self._of_inputs:
            return images
        brightness, degrees = (
            sum(
                (each.by * each.part_at(times) for each in self._of_inputs if isinstance(each, kind)),
                np.zeros(len(times)),
            )
            for kind in (Brightness, Rotation)
        )
        parts = [slice(begin, begin + _IMAGES) for begin in range(0, len(times), _IMAGES)]
        return torch.cat([changed(images[part], brightness[part], degrees[part], *self._range) for part in parts])

    def _at(self, now: float, images: Tensor) -> Tensor:
        return self.changed(images, np.full(len(images), now))


@dataclass(frozen=True)
class DataStream:
    """The arrivals of each worker, and their drift."""

    spec: Stream
    seed: int
    dataset: Dataset
    """The data with training inputs as they arrive."""
    drift: Drift
    arrivals: Sequence[Arrivals]
    """Those of each worker."""

    @classmethod
    def of(cls, scenario: Scenario, dataset: Dataset, shards: Sequence[Indices]) -> DataStream | None:
        """The stream of a scenario, if it has one, for workers with such shards. Raises InputError if it is
        impossible."""
        spec = scenario.workload.stream
        if spec is None:
            return None
        labels = _checked_labels(scenario, dataset, spec, shards)
        clouds = [worker.cloud for worker in scenario.cluster.workers]
        drift = Drift(spec, clouds, class_histogram(labels, shards, dataset.task.outputs), dataset.train_inputs)
        arrivals = [_arrivals(scenario, spec, drift, labels, worker, shard) for worker, shard in enumerate(shards)]
        return cls(spec, scenario.seed, _at_arrival(dataset, drift, arrivals), drift, arrivals)

    @property
    def shards(self) -> Sequence[Indices]:
        return [each.samples for each in self.arrivals]

    @property
    def changes(self) -> list[dict[str, Any]]:
        spans = [(each.what, *each.span) for each in self.spec.drift]
        return [{"what": what, "begin": begin, "end": end} for what, begin, end in spans]

    def most_kept(self, worker: int) -> int:
        come, most = len(self.arrivals[worker].samples), self.spec.keep.most
        return come if most is None else min(come, most)

    def sampler(self, worker: int, rng: np.random.Generator) -> StreamSampler:
        """The sampler of a worker's batches, with a random stream."""
        keep = self.spec.keep
        kept = (
            Newest(keep.window)
            if keep.reservoir is None
            else Reservoir(keep.reservoir, stream(self.seed, "reservoir", worker))
        )
        return StreamSampler(self.arrivals[worker], kept, rng)


def _checked_labels(scenario: Scenario, dataset: Dataset, spec: Stream, shards: Sequence[Indices]) -> Indices:
    """The class of each training sample. Raises InputError for a stream that does not fit the data or the run."""
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
            problem = "without a duration, the number of samples needed is not known"
            raise InputError(problem, path=f"stream.drift.{number}", allowed="a scenario with a duration")
    if spec.of_inputs and (dataset.input_kind != "images" or dataset.train_inputs.dim() != 4):
        number, of_images = spec.of_inputs[0]
        problem = f"'{name}' has no images, which {of_images.kind} needs"
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


def _at_arrival(dataset: Dataset, drift: Drift, arrivals: Sequence[Arrivals]) -> Dataset:
    """The data with each training input as it is at its arrival; no two workers share one."""
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
