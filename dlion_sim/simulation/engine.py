"""The virtual-time driver: turns the workers' actions into events of a modelled world, and those into actions again."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import simpy

from dlion_sim.learning import BatchSampler, Evaluator, FusedGradientExecutor, GradientExecutor, Score
from dlion_sim.participants import ComputeDevice, Recorder
from dlion_sim.protocol.events import (
    Compute,
    Event,
    GradientReady,
    LinkCapacity,
    MessageArrived,
    MessageSent,
    Profile,
    ProfileReady,
    Report,
    Send,
    Started,
    Stop,
)
from dlion_sim.protocol.messages import Message
from dlion_sim.protocol.server import ParameterServer
from dlion_sim.protocol.worker import Worker
from dlion_sim.simulation.topology import Topology
from dlion_sim.simulation.transport import Transport

StoppedBy = Literal["duration", "iterations", "target_accuracy", "interrupt", "stall"]
"""Why a run ended; a stall is that nobody can ever go on, as when a link that all wait for is gone for good."""


OBSERVE_EVERY = 0.1
"""Wall seconds between two looks at the progress."""


@dataclass(frozen=True)
class Node:
    """A worker with its machine and its data."""

    worker: Worker
    device: ComputeDevice
    sampler: BatchSampler


@dataclass(frozen=True)
class StopRule:
    """What ends a run, whichever comes first: virtual seconds, or a mean test accuracy (0 to 1)."""

    duration: float | None
    target_accuracy: float | None


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    virtual_seconds: float
    iterations: float
    """Mean over the workers."""
    accuracy: float | None
    """Mean over the workers at the last evaluation."""


class Engine:
    """Runs the nodes in virtual time.

    A gradient is started at its virtual start, when its inputs are fixed, and read at its virtual end; in between it is
    computed, side by side with all others that were started and not read.
    """

    def __init__(
        self,
        *,
        nodes: Sequence[Node],
        servers: Sequence[ParameterServer],
        topology: Topology,
        executor: GradientExecutor | FusedGradientExecutor,
        evaluator: Evaluator,
        recorder: Recorder,
        evaluate_every: float,
        evaluation_samples: int | None,
        stop: StopRule,
    ) -> None:
        self._env = simpy.Environment()
        self._nodes = nodes
        self._participants: list[Worker | ParameterServer] = [*(node.worker for node in nodes), *servers]
        self._topology = topology
        self._executor = executor
        self._evaluator = evaluator
        self._recorder = recorder
        self._evaluate_every = evaluate_every
        self._evaluation_samples = evaluation_samples
        self._stop = stop
        self._transport = Transport(
            self._env, topology, sent=self._on_sent, delivered=self._on_delivered, changed=self._tell_capacities
        )
        self._end = stop.duration if stop.duration is not None else float("inf")
        self._running = len(nodes)
        self._stopped_by: StoppedBy | None = None
        self._last_evaluation = -1.0
        self.evaluation_seconds = 0.0
        """Wall time that evaluations took."""

    @property
    def now(self) -> float:
        """Virtual seconds since the start."""
        return float(self._env.now)

    def run(self, interrupted: Callable[[], bool], observe: Callable[[Progress], None]) -> StoppedBy:
        """Run until a stop rule holds or `interrupted()`, and evaluate a last time, unless interrupted."""
        next_observation = time.monotonic()
        self._env.process(self._evaluate_regularly())
        self._tell_capacities()
        for index in range(len(self._nodes)):
            self._tell(index, Started())
        while self._stopped_by is None:
            if interrupted():
                return "interrupt"
            if self._env.peek() > self._end:
                if self._env.now < self._end:
                    self._env.run(until=self._end)
                self._stopped_by = "duration"
            else:
                self._env.step()
            if time.monotonic() >= next_observation:
                observe(self._progress())
                next_observation = time.monotonic() + OBSERVE_EVERY
        if self._last_evaluation < self._env.now:
            self._evaluate(None)
        observe(self._progress())
        return self._stopped_by

    def _tell(self, index: int, event: Event) -> None:
        """Hand an event to a worker or server and do what it asks for."""
        for action in self._participants[index].handle(event, self._env.now):
            match action:
                case Compute():
                    self._compute(index, action.batch_size)
                case Send():
                    self._transport.send(action.peer, action.message)
                case Report():
                    self._recorder.iteration(index, action, self._env.now)
                case Profile():
                    self._profile(index, action.batch_sizes)
                case Stop():
                    self._running -= 1
                    if not self._running:
                        self._stopped_by = "iterations"

    def _compute(self, index: int, batch_size: int) -> None:
        node = self._nodes[index]
        seconds = node.device.seconds(batch_size, self._env.now)
        ticket = self._executor.submit(node.worker.replica, node.sampler.take(batch_size))

        def ready() -> None:
            loss, gradient = self._executor.result(ticket)
            self._tell(index, GradientReady(loss, gradient, seconds))

        self._after(seconds, ready)

    def _profile(self, index: int, batch_sizes: Sequence[int]) -> None:
        measurements = []
        end = self._env.now
        for batch_size in batch_sizes:
            seconds = self._nodes[index].device.seconds(batch_size, end)
            measurements.append((batch_size, seconds))
            end += seconds
        self._after(end - self._env.now, lambda: self._tell(index, ProfileReady(tuple(measurements))))

    def _after(self, seconds: float, call: Callable[[], None]) -> None:
        """Call after so many virtual seconds; never, where they are infinite."""
        if seconds < float("inf"):
            self._env.timeout(seconds).callbacks.append(lambda _: call())

    def _on_sent(self, sender: int, receiver: int, message: Message, seconds: float) -> None:
        if self._topology.route(sender, receiver).links:
            self._recorder.sent(sender, receiver, message)
        if message.body.bulk:
            self._tell(sender, MessageSent(receiver, message.size, seconds))

    def _on_delivered(self, receiver: int, message: Message) -> None:
        self._tell(receiver, MessageArrived(message))

    def _tell_capacities(self) -> None:
        """Tell those workers that go by an oracle what their links can carry."""
        if not any(node.worker.choices.exchange.needs_oracle for node in self._nodes):
            return
        pairs = [(sender, peer) for sender, node in enumerate(self._nodes) for peer in node.worker.setup.peers]
        for (sender, peer), (alone, shared) in zip(pairs, self._transport.capacities(pairs), strict=True):
            self._tell(sender, LinkCapacity(peer, alone, shared))

    def _evaluate_regularly(self) -> simpy.events.ProcessGenerator:
        while self._env.now < self._end:
            self._evaluate(self._evaluation_samples)
            if self._env.peek() == float("inf"):
                self._stopped_by = self._stopped_by or "stall"
                return
            yield self._env.timeout(self._evaluate_every)

    def _evaluate(self, samples: int | None) -> None:
        """Evaluate every replica on so many test samples, by default all; takes no virtual time.

        An accuracy that ends the run is that on all.
        """
        began = time.perf_counter()
        replicas = [node.worker.replica for node in self._nodes]
        scores = self._evaluator.evaluate(replicas, samples)
        if samples is not None and self._is_target_reached(scores):
            scores, samples = self._evaluator.evaluate(replicas), None
        self.evaluation_seconds += time.perf_counter() - began
        for index, score in enumerate(scores):
            self._recorder.evaluation(index, score, self._recorder.iterations[index], self._env.now)
        self._recorder.end_interval(self._env.now)
        if samples is None:
            self._last_evaluation = self._env.now
            if self._is_target_reached(scores):
                self._stopped_by = "target_accuracy"

    def _is_target_reached(self, scores: Sequence[Score]) -> bool:
        target = self._stop.target_accuracy
        return target is not None and bool(np.mean([score.accuracy for score in scores]) >= target)

    def _progress(self) -> Progress:
        iterations = list(self._recorder.iterations.values())
        return Progress(self._env.now, float(np.mean(iterations)), self._recorder.accuracy)
