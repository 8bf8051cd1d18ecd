"""The virtual-time driver: turns the workers' actions into events of a modelled world, and those into actions again."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, assert_never

import numpy as np

from dlion_sim.assembly import ComputeDevice, Recorder, Transfer
from dlion_sim.learning import BatchSampler, Evaluator, FusedGradientExecutor, GradientExecutor, Score, Ticket
from dlion_sim.metric import ACCURACY, Metric
from dlion_sim.protocol.events import (
    Abort,
    Compute,
    Event,
    GradientReady,
    LinkCapacity,
    MessageArrived,
    MessageSent,
    MessageTimed,
    Profile,
    ProfileReady,
    Report,
    Send,
    Started,
    Stop,
)
from dlion_sim.protocol.messages import Channel, Message
from dlion_sim.protocol.server import ParameterServer
from dlion_sim.protocol.worker import Worker
from dlion_sim.results import Ending, Status
from dlion_sim.simulation.agenda import Agenda
from dlion_sim.simulation.carrier import Carrier
from dlion_sim.simulation.routing import Routing

StoppedBy = Literal["duration", "iterations", "target_accuracy", "target", "interrupt", "pause", "stall", "abort"]
"""Why a run ended; a pause is where it was to end for now, a stall that nobody can ever go on, as when a link that all
wait for is gone for good, an abort that a worker or server says that it cannot."""


OBSERVE_EVERY = 0.1
"""Wall seconds between two looks at the progress."""


@dataclass(frozen=True)
class Node:
    """A worker with its machine and its data."""

    worker: Worker
    device: ComputeDevice
    sampler: BatchSampler


@dataclass(frozen=True)
class Equipment:
    """What computes: all that is of the process and not of the simulation."""

    executor: GradientExecutor | FusedGradientExecutor
    evaluator: Evaluator


@dataclass(frozen=True)
class StopRule:
    """What ends a run, whichever comes first: virtual seconds, or a mean of the task's metric that is as good."""

    duration: float | None
    target: float | None


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    virtual_seconds: float
    iterations: float
    """Mean over the workers."""
    score: float | None
    """The metric's mean over the workers at the last evaluation."""
    metric: Metric


class Engine:
    """Runs the nodes in virtual time.

    A gradient is started at its virtual start, when its inputs are fixed, and read at its virtual end; in between it is
    computed, side by side with all others that were started and not read.

    Between two events its state can be saved, all but the equipment. `equip` gives it another, with which it goes on
    to the bit. `transport` makes what carries the messages.
    """

    def __init__(
        self,
        *,
        nodes: Sequence[Node],
        servers: Sequence[ParameterServer],
        routing: Routing,
        transport: Callable[..., Carrier],
        equipment: Equipment,
        recorder: Recorder,
        evaluate_every: float,
        evaluation_samples: int | None,
        stop: StopRule,
        sample_every: float | None = None,
    ) -> None:
        self._agenda = Agenda()
        self._nodes = nodes
        self._gradients: dict[int, Ticket] = {}
        """That were started and not read, by worker."""
        self._participants: list[Worker | ParameterServer] = [*(node.worker for node in nodes), *servers]
        self._routing = routing
        self._equipment = equipment
        self.recorder = recorder
        self._evaluate_every = evaluate_every
        self._evaluation_samples = evaluation_samples
        self._sample_every = sample_every
        """Virtual seconds between rows of queues, where there are any."""
        self._stop = stop
        self._transport = transport(
            self._agenda,
            routing,
            sent=self._on_sent,
            timed=self._on_timed,
            delivered=self._on_delivered,
            changed=self._tell_capacities,
        )
        self._end = stop.duration if stop.duration is not None else float("inf")
        self._has_started = False
        self._running = len(nodes)
        self._stopped_by: StoppedBy | None = None
        self.abort_reason = ""
        """Where the run was ended by an abort."""
        self._last_evaluation = -1.0
        self._evaluation_seconds = 0.0
        """Wall time that they took."""

    @property
    def now(self) -> float:
        """Virtual seconds since the start."""
        return self._agenda.now

    def equip(self, equipment: Equipment) -> None:
        """Compute with this from now on; what was under way is started anew."""
        self._equipment = equipment
        for index, ticket in self._gradients.items():
            if not ticket.is_answered:
                self._gradients[index] = equipment.executor.submit(ticket.replica, ticket.samples)

    def run(
        self,
        interrupted: Callable[[], bool],
        observe: Callable[[Progress], None],
        until: float | None = None,
    ) -> StoppedBy:
        """Go on until a stop rule holds, and evaluate a last time; or, without that, until `interrupted()` or a pause.

        `observe` is told between two events, a few times a second. All that is to happen up to the virtual time `until`
        (s), if there is one, has happened before the pause.
        """
        pause = float("inf") if until is None else until
        if not self._has_started:
            self._start()
        next_observation = time.monotonic()
        while self._stopped_by is None:
            if interrupted():
                return "interrupt"
            if time.monotonic() >= next_observation:
                observe(self._progress())
                next_observation = time.monotonic() + OBSERVE_EVERY
            if self._agenda.is_idle and self._transport.is_stuck:
                self._stopped_by = "stall"
            elif pause < min(self._agenda.next_time, self._end):
                self._agenda.advance(pause)
                return "pause"
            elif self._agenda.next_time > self._end:
                self._agenda.advance(self._end)
                self._stopped_by = "duration"
            else:
                self._agenda.step()
        if self._last_evaluation < self.now:
            self._evaluate(None)
        self.recorder.queues(self._transport.queues())
        observe(self._progress())
        return self._stopped_by

    def summary(self, status: Status, stopped_by: str) -> dict[str, Any]:
        """Of the run, which ends here, in the middle of whatever is under way."""
        self._end_interval()
        for transfer, _ in self._transport.under_way():
            self.recorder.cut_off(transfer)
        for index, node in enumerate(self._nodes):
            self.recorder.unfinished(index, node.worker.unfinished(self.now), self.now)
        return self.recorder.summary(
            Ending(status, stopped_by, self.now),
            evaluation_seconds=self._evaluation_seconds,
            target=self._stop.target,
        )

    def _start(self) -> None:
        self._has_started = True
        self._agenda.after(0.0, self._evaluate_regularly, background=True)
        self._sample_regularly()
        self._tell_capacities()
        for index in range(len(self._nodes)):
            self._tell(index, Started())

    def _tell(self, index: int, event: Event) -> None:
        """Hand an event to a worker or server and do what it asks for."""
        for action in self._participants[index].handle(event, self.now):
            match action:
                case Compute():
                    self._compute(index, action.batch_size)
                case Send():
                    self._transport.send(action.peer, action.message)
                case Report():
                    self.recorder.iteration(index, action, self.now)
                case Profile():
                    self._profile(index, action.batch_sizes)
                case Stop():
                    self._running -= 1
                    if not self._running:
                        self._stopped_by = "iterations"
                case Abort():
                    self._stopped_by, self.abort_reason = "abort", action.reason
                case _:
                    assert_never(action)

    def _compute(self, index: int, batch_size: int) -> None:
        node = self._nodes[index]
        stall = node.device.feed(batch_size, self.now)
        fed_at = stall.seconds if stall else 0.0
        seconds = fed_at + node.device.seconds(batch_size, self.now + fed_at)
        if stall:
            self.recorder.fed(index, stall)
        self._gradients[index] = self._equipment.executor.submit(node.worker.replica, node.sampler.take(batch_size))
        self._agenda.after(seconds, partial(self._on_gradient, index, seconds))

    def _on_gradient(self, index: int, seconds: float) -> None:
        loss, gradient = self._equipment.executor.result(self._gradients.pop(index))
        self._tell(index, GradientReady(loss, gradient, seconds))

    def _profile(self, index: int, batch_sizes: Sequence[int]) -> None:
        measurements = []
        end = self.now
        for batch_size in batch_sizes:
            seconds = self._nodes[index].device.seconds(batch_size, end)
            measurements.append((batch_size, seconds))
            end += seconds
        profiled = partial(self._on_profile, index, end - self.now, ProfileReady(tuple(measurements)))
        self._agenda.after(end - self.now, profiled)

    def _on_profile(self, index: int, seconds: float, ready: ProfileReady) -> None:
        self.recorder.profiled(index, seconds, self.now)
        self._tell(index, ready)

    def _on_sent(self, transfer: Transfer) -> None:
        if transfer.message.body.channel is Channel.DATA:
            self._tell(transfer.sender, MessageSent(transfer.receiver, transfer.message.size))

    def _on_timed(self, transfer: Transfer, seconds: float, left: float) -> None:
        sender, receiver, message = transfer.sender, transfer.receiver, transfer.message
        if not self._routing.share_machine(sender, receiver):
            self.recorder.sent(transfer, left)
        if message.body.channel is Channel.DATA:
            self._tell(sender, MessageTimed(receiver, message.size, seconds))

    def _on_delivered(self, receiver: int, message: Message) -> None:
        self._tell(receiver, MessageArrived(message))

    def _tell_capacities(self) -> None:
        """Tell those workers that go by an oracle what their links can carry."""
        if not any(node.worker.choices.exchange.needs_oracle for node in self._nodes):
            return
        pairs = [(sender, peer) for sender, node in enumerate(self._nodes) for peer in node.worker.setup.peers]
        for (sender, peer), (alone, shared) in zip(pairs, self._transport.bytes_per_second(pairs), strict=True):
            self._tell(sender, LinkCapacity(peer, alone, shared))

    def _sample_regularly(self) -> None:
        if self._sample_every is not None:
            self.recorder.queues(self._transport.queues())
            self._agenda.after(self._sample_every, self._sample_regularly, background=True)

    def _evaluate_regularly(self) -> None:
        self._evaluate(self._evaluation_samples)
        if self.now + self._evaluate_every < self._end:
            self._agenda.after(self._evaluate_every, self._evaluate_regularly, background=True)

    def _evaluate(self, samples: int | None) -> None:
        """Evaluate every replica on so many samples, by default all; takes no virtual time.

        A metric that ends the run is that on all.
        """
        began = time.perf_counter()
        replicas = [node.worker.replica for node in self._nodes]
        scores = self._equipment.evaluator.evaluate(replicas, samples)
        if samples is not None and self._is_target_reached(scores):
            scores, samples = self._equipment.evaluator.evaluate(replicas), None
        self._evaluation_seconds += time.perf_counter() - began
        for index, score in enumerate(scores):
            self.recorder.evaluation(index, score, self.recorder.iterations[index], self.now)
        self._end_interval()
        if samples is None:
            self._last_evaluation = self.now
            if self._is_target_reached(scores):
                self._stopped_by = "target_accuracy" if self.recorder.metric == ACCURACY else "target"

    def _end_interval(self) -> None:
        for transfer, size in self._transport.under_way():
            self.recorder.carried(transfer, size)
        self.recorder.end_interval(self.now)

    def _is_target_reached(self, scores: Sequence[Score]) -> bool:
        target = self._stop.target
        mean = float(np.mean([score.metric for score in scores]))
        return target is not None and self.recorder.metric.reaches(mean, target)

    def _progress(self) -> Progress:
        iterations = list(self.recorder.iterations.values())
        return Progress(self.now, float(np.mean(iterations)), self.recorder.score, self.recorder.metric)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_equipment"}
