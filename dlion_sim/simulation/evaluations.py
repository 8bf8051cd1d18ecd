"""How good the workers' parameters are in the course of a simulation. To find that out takes no virtual time."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from dlion_sim.assembly import Recorder, StreamSampler
from dlion_sim.learning import Score
from dlion_sim.simulation.equipment import Equipment, Node


class Evaluations:
    """Evaluates the workers among `nodes` that are `members` at the time.

    `samples` says on how many, None on all; what comes to `target` on some of them is tried on all.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        members: Collection[int],
        equipment: Equipment,
        recorder: Recorder,
        *,
        samples: int | None,
        target: float | None,
    ) -> None:
        self._nodes = nodes
        self._members = members
        self._recorder = recorder
        self._samples = samples
        self._target = target
        self.last = -1.0
        """When the last one on all samples was (virtual seconds)."""
        self.seconds = 0.0
        """Wall time that they took."""
        self._equipment = equipment

    def equip(self, equipment: Equipment) -> None:
        """Compute with this from now on."""
        self._equipment = equipment

    def evaluate(self, now: float, *, on_all: bool = False) -> bool:
        """Evaluate all that take part; returns whether they have reached the target, on all samples."""
        workers = sorted(self._members)
        samples = None if on_all else self._samples
        began = time.perf_counter()
        scores = self._scores(workers, samples, now)
        if samples is not None and self._is_target_reached(scores):
            samples = None
            scores = self._scores(workers, samples, now)
        self.seconds += time.perf_counter() - began
        for worker, score in zip(workers, scores, strict=True):
            self._recorder.evaluation(worker, score, self._recorder.iterations[worker], now)
        if samples is not None:
            return False
        self.last = now
        return self._is_target_reached(scores)

    def receive(self, worker: int, now: float) -> None:
        """Test a worker on what has come to it, before it may train on that."""
        node = self._nodes[worker]
        if isinstance(node.sampler, StreamSampler) and len(came := node.sampler.receive(now)):
            began = time.perf_counter()
            score = self._equipment.evaluator.score(node.worker.replica, came)
            self.seconds += time.perf_counter() - began
            self._recorder.arrivals(worker, score, len(came), now)

    def _scores(self, workers: Sequence[int], samples: int | None, now: float) -> Sequence[Score]:
        replicas = [self._nodes[worker].worker.replica for worker in workers]
        moment = self._equipment.moment(now)
        return self._equipment.evaluator.evaluate(replicas, samples, moment) if replicas else []

    def _is_target_reached(self, scores: Sequence[Score]) -> bool:
        if self._target is None or not scores:
            return False
        return self._recorder.metric.reaches(float(np.mean([score.metric for score in scores])), self._target)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_equipment"}
