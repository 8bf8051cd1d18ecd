"""The driver of virtual time: carries out participants' actions on modelled machines and links, as events."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, assert_never

import numpy as np

from dlion_sim.assembly import Recorder
from dlion_sim.metric import ACCURACY, Metric
from dlion_sim.protocol.events import (
    Abort,
    Compute,
    Event,
    Joined,
    LeaveCompleted,
    LinkCapacity,
    MessageArrived,
    PeerFound,
    PeerLost,
    Profile,
    Report,
    Send,
    Started,
    Stop,
)
from dlion_sim.protocol.server import ParameterServer
from dlion_sim.protocol.worker import Worker
from dlion_sim.results import Ending, EvaluationSamples, MembershipEvent, MembershipRow, Status
from dlion_sim.simulation.carrier import Carrier
from dlion_sim.simulation.churn import Churn
from dlion_sim.simulation.computing import Computing, Equipment, Node
from dlion_sim.simulation.evaluations import Evaluations
from dlion_sim.simulation.event_queue import Call, EventQueue
from dlion_sim.simulation.messaging import Messaging
from dlion_sim.simulation.routing import Routing

StoppedBy = Literal["duration", "iterations", "target_accuracy", "target", "interrupt", "pause", "stall", "abort"]
"""Why a run ended. Pause: at the given time, for now. Stall: no worker can ever continue, as when a link that all wait
for is down for good. Abort: a worker or server cannot continue."""


OBSERVE_EVERY = 0.1
"""Wall seconds between two reports of progress."""

_ROUNDING = 1e-9
"""The largest relative error of times that are sums of floats."""


@dataclass(frozen=True)
class Progress:
    """The progress of a run."""

    virtual_seconds: float
    iterations: float
    """Mean over the workers."""
    score: float | None
    """The metric's mean over the workers at the last evaluation."""
    metric: Metric


class Engine:
    """Runs the nodes in virtual time.

    Between two events its state can be saved, without the equipment; after `equip` it continues to the bit. `transport`
    makes the carrier of messages, each of which takes its receiver `per_message` seconds, and `churn` the model of
    availability, if there is one. A run ends after `duration` virtual seconds, or when the mean of the task's metric
    reaches the `target`.
    """

    def __init__(
        self,
        *,
        nodes: Sequence[Node],
        servers: Sequence[ParameterServer],
        routing: Routing,
        transport: Callable[..., Carrier],
        churn: Callable[..., Churn] | None = None,
        equipment: Equipment,
        recorder: Recorder,
        evaluate_every: float,
        evaluation_samples: EvaluationSamples,
        duration: float | None,
        target: float | None,
        per_message: float = 0.0,
        sample_every: float | None = None,
    ) -> None:
        self._event_queue = EventQueue()
        self._nodes = list(nodes)
        self._participants: list[Worker | ParameterServer] = [*(node.worker for node in nodes), *servers]
        self._node = equipment.node
        self.recorder = recorder
        self._evaluate_every = evaluate_every
        self._sample_every = sample_every
        """Virtual seconds between rows of queues, if there are any."""
        self._target = target
        self._members = set(range(len(nodes)))
        """Workers that are members, at first those that are started."""
        self._computing = Computing(
            self._event_queue,
            self._nodes,
            equipment.executor,
            recorder,
            handle=self._handle,
            incarnation=self._incarnation,
        )
        self._evaluations = Evaluations(
            self._nodes,
            self._members,
            servers[0] if nodes[0].worker.choices.exchange.evaluates_server else None,
            equipment,
            recorder,
            samples=evaluation_samples,
            target=target,
        )
        self._messaging = Messaging(
            self._event_queue,
            routing,
            transport,
            recorder,
            per_message=per_message,
            handle=self._handle,
            changed=self._report_capacities,
        )
        self._transport = self._messaging.carrier
        self._churn: Churn | None = None
        """In scenarios with availability."""
        if churn is not None:
            self._churn = self._messaging.churn = churn(
                self._event_queue,
                routing,
                equipment.outages,
                handle=self._on_membership_event,
                cut=self._messaging.cut,
                started=self._on_process_started,
                ended=self._on_process_ended,
                record=recorder.append,
            )
        self._end = duration if duration is not None else float("inf")
        self._has_started = False
        self._running = set(range(len(nodes)))
        """Workers with iterations left to do, without those that are down for good."""
        self._is_any_done = False
        self._needs_oracle = any(node.worker.choices.exchange.needs_oracle for node in nodes)
        self._is_report_due = False
        """Whether true bandwidths are to be reported at the end of the present instant."""
        self._stopped_by: StoppedBy | None = None
        self.abort_reason = ""
        """The reason of an abort."""
        self.abort_peer: int | None = None
        """The participant that was lost, left or joined before it."""

    @property
    def now(self) -> float:
        return self._event_queue.now

    @property
    def has_stopped(self) -> bool:
        """Whether a stop rule holds."""
        return self._stopped_by is not None

    def equip(self, equipment: Equipment) -> None:
        """Set the equipment, after resuming; gradients that were being computed are started again."""
        self._node = equipment.node
        if self._churn is not None:
            self._churn.attach(equipment.outages)
        self._computing.equip(equipment.executor)
        self._evaluations.equip(equipment)

    def run(
        self,
        interrupted: Callable[[], bool],
        observe: Callable[[Progress], None],
        until: float | None = None,
    ) -> StoppedBy:
        """Run until a stop rule holds, and evaluate a last time; or until `interrupted()` or a pause, without that.

        `observe` is called between two events, a few times a second. The pause comes after all events up to the virtual
        time `until` (s), if given.
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
            if self._event_queue.is_idle and self._transport.is_stuck:
                self._stopped_by = "stall"
            elif pause < min(self._event_queue.next_time, self._end):
                self._event_queue.advance(pause)
                return "pause"
            elif self._event_queue.next_time > self._end:
                self._event_queue.advance(self._end)
                self._stopped_by = "duration"
            else:
                self._event_queue.step()
        if self._evaluations.last < self.now:
            self._evaluate()
        self._evaluations.evaluate_fully(self.now)
        self._record_queues()
        observe(self._progress())
        return self._stopped_by

    def summary(self, status: Status, stopped_by: str) -> dict[str, Any]:
        self._end_interval()
        for transfer, _ in self._transport.under_way():
            self.recorder.cut_off(transfer)
        for index in sorted(self._members):
            self.recorder.unfinished(index, self._nodes[index].worker.unfinished(self.now), self.now)
        return self.recorder.summary(
            Ending(status, stopped_by, self.now),
            evaluation_seconds=self._evaluations.seconds,
            target=self._target,
            messages=None if self._churn is None else self._messaging.counts,
        )

    def _start(self) -> None:
        self._has_started = True
        self._event_queue.after(0.0, self._evaluate_regularly, background=True)
        self._sample_regularly()
        if self._churn is not None:
            self._churn.start()
        servers = range(len(self._nodes), len(self._participants))
        for index in (*sorted(self._members), *servers):
            self._handle(index, Started())
        self._report_capacities()

    def _handle(self, index: int, event: Event) -> None:
        """Hand an event to a worker or server and carry out its actions."""
        for action in self._participants[index].handle(event, self.now):
            match action:
                case Compute():
                    self._evaluations.receive(index, self.now)
                    self._computing.gradient(index, action.batch_size)
                case Send():
                    self._messaging.send(action.peer, action.message)
                case Report():
                    self.recorder.iteration(index, action, self.now)
                    self._computing.reported(index)
                case Profile():
                    self._computing.profile(index, action.batch_sizes)
                case Stop():
                    self._is_any_done = True
                    self._stop_worker(index)
                case Joined():
                    self._on_joined(index, action)
                case LeaveCompleted():
                    assert self._churn is not None
                    self._churn.left(index)
                case Abort():
                    self._stopped_by, self.abort_reason = "abort", action.reason
                    self.abort_peer = event.message.sender if isinstance(event, MessageArrived) else None
                    if isinstance(event, PeerFound | PeerLost):
                        self.abort_peer = event.peer
                case _:
                    assert_never(action)

    def _on_membership_event(self, index: int, event: Event) -> None:
        self._handle(index, event)
        # The loss of a cloud is one of many pairs at once.
        if isinstance(event, PeerFound | PeerLost) and self._needs_oracle and not self._is_report_due:
            self._is_report_due = True
            self._event_queue.late(self._report_capacities)

    def _on_process_started(self, index: int) -> None:
        assert self._churn is not None
        if index < len(self._nodes):
            absent, incarnation = self._churn.unreachable(index), self._incarnation(index)
            node = self._nodes[index] = self._node(index, incarnation, absent, self.now)
            self._participants[index] = node.worker
        elif self._incarnation(index):
            self._stopped_by, self.abort_reason = "abort", f"server {index}'s part of the parameters is lost"
        self._handle(index, Started(joining=True))

    def _on_joined(self, index: int, joined: Joined) -> None:
        self._members.add(index)
        what: MembershipEvent = "begins_anew" if joined.sponsor is None else "joined"
        row = MembershipRow(self.now, index, self._incarnation(index), what, joined.sponsor, joined.seconds)
        state_bytes = self._messaging.state_bytes.pop(index, 0)
        self.recorder.append(row._replace(bytes=state_bytes, iteration=joined.iteration))
        self._report_capacities()

    def _on_process_ended(self, index: int, for_good: bool) -> None:
        self._messaging.process_ended(index)
        if index >= len(self._nodes):
            return
        unfinished = self._nodes[index].worker.unfinished(self.now)
        self.recorder.lost(index, unfinished, self._computing.drop(index), self.now)
        self._members.discard(index)
        if for_good:
            self._stop_worker(index)

    def _stop_worker(self, index: int) -> None:
        """A worker does no more iterations."""
        self._running.discard(index)
        if not self._running:
            self._stopped_by = "iterations" if self._is_any_done else "stall"

    def _incarnation(self, index: int) -> int:
        return 0 if self._churn is None else self._churn.incarnations[index]

    def _report_capacities(self) -> None:
        """Hand true bandwidths to workers whose exchange needs them."""
        self._is_report_due = False
        if not self._needs_oracle:
            return
        pairs = [(each, peer) for each in sorted(self._members) for peer in self._nodes[each].worker.setup.links.peers]
        for (sender, peer), (alone, shared) in zip(pairs, self._transport.bytes_per_second(pairs), strict=True):
            self._handle(sender, LinkCapacity(peer, alone, shared))

    def _record_queues(self) -> None:
        for row in self._transport.queues():
            self.recorder.append(row)

    def _sample_regularly(self) -> None:
        if self._sample_every is not None:
            self._record_queues()
            self._repeat(self._sample_every, self._sample_regularly)

    def _evaluate_regularly(self) -> None:
        self._evaluate()
        self._repeat(self._evaluate_every, self._evaluate_regularly)

    def _repeat(self, seconds: float, call: Call) -> None:
        """Schedule a call in so many seconds, if the run lasts longer; at its end there is a last one anyway."""
        if self.now + seconds < self._end * (1 - _ROUNDING):
            self._event_queue.after(seconds, call, background=True)

    def _evaluate(self) -> None:
        is_target_reached = self._evaluations.evaluate(self.now)
        self._end_interval()
        if is_target_reached:
            self._stopped_by = "target_accuracy" if self.recorder.metric == ACCURACY else "target"

    def _end_interval(self) -> None:
        for transfer, size in self._transport.under_way():
            self.recorder.carried(transfer, size)
        self.recorder.end_interval(self.now)

    def _progress(self) -> Progress:
        iterations = list(self.recorder.iterations.values())
        return Progress(self.now, float(np.mean(iterations)), self.recorder.score, self.recorder.metric)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_node"}
