"""Evaluations of parameters during a simulation, which take no virtual time."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from dlion_sim.assembly import Recorder, StreamSampler
from dlion_sim.learning import Replica, Score
from dlion_sim.protocol.server import ParameterServer
from dlion_sim.results import EvaluationSamples
from dlion_sim.simulation.computing import Equipment, Node


class Evaluations:
    """Evaluates the present `members` among `nodes`, or in their place a `server`.

    All on the same samples, and in `evaluate_fully` on all samples.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        members: Collection[int],
        server: ParameterServer | None,
        equipment: Equipment,
        recorder: Recorder,
        *,
        samples: EvaluationSamples,
        target: float | None,
    ) -> None:
        self._nodes = nodes
        self._members = members
        self._server = server
        self._recorder = recorder
        self._samples = samples
        self._target = target
        self.last = -1.0
        """Virtual time of the last one (s)."""
        self.seconds = 0.0
        """Their wall time (s)."""
        self._equipment = equipment

    def equip(self, equipment: Equipment) -> None:
        self._equipment = equipment

    def evaluate(self, now: float) -> bool:
        """Evaluate; returns whether the target is reached."""
        evaluated = self._evaluated
        scores = self._scores(evaluated, self._samples["curve"], now)
        for (participant, iteration, _), score in zip(evaluated, scores, strict=True):
            self._recorder.evaluation(participant, score, iteration, now)
        self.last = now
        return self._is_target_reached(scores)

    def evaluate_fully(self, now: float) -> None:
        """Evaluate on all samples, unless every evaluation is on these."""
        if self._samples["curve"] == self._samples["full"]:
            return
        evaluated = self._evaluated
        scores = self._scores(evaluated, self._samples["full"], now)
        for (participant, iteration, _), score in zip(evaluated, scores, strict=True):
            self._recorder.full_evaluation(participant, score, iteration, now)

    def receive(self, worker: int, now: float) -> None:
        """Test a worker on newly arrived samples, before it trains on them."""
        node = self._nodes[worker]
        if isinstance(node.sampler, StreamSampler) and len(arrived := node.sampler.receive(now)):
            began = time.perf_counter()
            score = self._equipment.evaluator.score(node.worker.replica, arrived)
            self.seconds += time.perf_counter() - began
            self._recorder.arrivals(worker, score, len(arrived), now)

    @property
    def _evaluated(self) -> list[tuple[int, int, Replica]]:
        """Participants, each with its iteration and parameters."""
        if self._server:
            return [(self._server.number, self._server.iteration, self._server.replica)]
        iterations = self._recorder.iterations
        return [(each, iterations[each], self._nodes[each].worker.replica) for each in sorted(self._members)]

    def _scores(self, evaluated: Sequence[tuple[int, int, Replica]], samples: int, now: float) -> Sequence[Score]:
        replicas = [replica for _, _, replica in evaluated]
        moment = self._equipment.moment(now)
        began = time.perf_counter()
        scores = self._equipment.evaluator.evaluate(replicas, samples, moment) if replicas else []
        self.seconds += time.perf_counter() - began
        return scores

    def _is_target_reached(self, scores: Sequence[Score]) -> bool:
        if self._target is None or not scores:
            return False
        return self._recorder.metric.reaches(float(np.mean([score.metric for score in scores])), self._target)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_equipment"}
