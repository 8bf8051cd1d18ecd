"""The virtual-time driver: turns the workers' actions into events of a modelled world, and those into actions again."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, assert_never

import numpy as np

from dlion_sim.assembly import Recorder, Transfer
from dlion_sim.metric import ACCURACY, Metric
from dlion_sim.protocol.events import (
    Abort,
    Compute,
    Elimination,
    Event,
    Joined,
    LinkCapacity,
    MessageArrived,
    MessageSent,
    MessageTimed,
    PeerFound,
    Profile,
    Report,
    Send,
    Started,
    Stop,
)
from dlion_sim.protocol.messages import Channel, Message
from dlion_sim.protocol.server import ParameterServer
from dlion_sim.protocol.worker import Worker
from dlion_sim.results import Ending, EvaluationSamples, MembershipRow, Status, What
from dlion_sim.simulation.carrier import Carrier
from dlion_sim.simulation.churn import Churn
from dlion_sim.simulation.computing import Computing
from dlion_sim.simulation.equipment import Equipment, Node
from dlion_sim.simulation.evaluations import Evaluations
from dlion_sim.simulation.event_queue import EventQueue
from dlion_sim.simulation.guarded import GuardedCarrier
from dlion_sim.simulation.routing import Routing

StoppedBy = Literal["duration", "iterations", "target_accuracy", "target", "interrupt", "pause", "stall", "abort"]
"""Why a run ended; a pause is where it was to end for now, a stall that nobody can ever go on, as when a link that all
wait for is gone for good, an abort that a worker or server says that it cannot."""


OBSERVE_EVERY = 0.1
"""Wall seconds between two looks at the progress."""


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

    Between two events its state can be saved, all but the equipment. `equip` gives it another, with which it goes on
    to the bit. `transport` makes what carries the messages, and `churn` what says who is there, where that changes.
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
        stop: StopRule,
        sample_every: float | None = None,
    ) -> None:
        self._event_queue = EventQueue()
        self._nodes = list(nodes)
        self._participants: list[Worker | ParameterServer] = [*(node.worker for node in nodes), *servers]
        self._routing = routing
        self._newcomers = equipment.newcomers
        self.recorder = recorder
        self._evaluate_every = evaluate_every
        self._sample_every = sample_every
        """Virtual seconds between rows of queues, where there are any."""
        self._stop = stop
        self._members = set(range(len(nodes)))
        """The workers that take part now, or will as soon as they are started."""
        self._computing = Computing(
            self._event_queue, self._nodes, equipment.executor, recorder, tell=self._tell, incarnation=self._incarnation
        )
        self._evaluations = Evaluations(
            self._nodes, self._members, equipment, recorder, samples=evaluation_samples, target=stop.target
        )
        self._churn: Churn | None = None
        """Where anybody may come or go."""
        if churn is not None:
            self._churn = churn(
                self._event_queue,
                routing,
                equipment.newcomers.outages,
                tell=self._on_news,
                cut=self._on_cut,
                came=self._on_came,
                went=self._on_went,
                record=recorder.membership,
            )
            transport = partial(GuardedCarrier, transport, self._churn)
        self._transport = transport(
            self._event_queue,
            routing,
            sent=self._on_sent,
            timed=self._on_timed,
            delivered=self._on_delivered,
            changed=self._tell_capacities,
        )
        self._end = stop.duration if stop.duration is not None else float("inf")
        self._has_started = False
        self._running = set(range(len(nodes)))
        """The workers that have not done all their iterations, but for those that are gone for good."""
        self._is_any_done = False
        self._needs_oracle = any(node.worker.choices.exchange.needs_oracle for node in nodes)
        self._stopped_by: StoppedBy | None = None
        self.abort_reason = ""
        """Where the run was ended by an abort."""

    @property
    def now(self) -> float:
        """Virtual seconds since the start."""
        return self._event_queue.now

    def equip(self, equipment: Equipment) -> None:
        """Compute with this from now on; what was under way is started anew."""
        self._newcomers = equipment.newcomers
        if self._churn is not None:
            self._churn.attach(equipment.newcomers.outages)
        self._computing.equip(equipment.executor)
        self._evaluations.equip(equipment)

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
        self.recorder.queues(self._transport.queues())
        observe(self._progress())
        return self._stopped_by

    def summary(self, status: Status, stopped_by: str) -> dict[str, Any]:
        """Of the run, which ends here, in the middle of whatever is under way."""
        self._end_interval()
        for transfer, _ in self._transport.under_way():
            self.recorder.cut_off(transfer)
        for index in sorted(self._members):
            self.recorder.unfinished(index, self._nodes[index].worker.unfinished(self.now), self.now)
        return self.recorder.summary(
            Ending(status, stopped_by, self.now),
            evaluation_seconds=self._evaluations.seconds,
            target=self._stop.target,
            messages=self._transport.counts.told if isinstance(self._transport, GuardedCarrier) else None,
        )

    def _start(self) -> None:
        self._has_started = True
        self._event_queue.after(0.0, self._evaluate_regularly, background=True)
        self._sample_regularly()
        self._tell_capacities()
        if self._churn is not None:
            self._churn.start()
        for index in sorted(self._members):
            self._tell(index, Started())

    def _tell(self, index: int, event: Event) -> None:
        """Hand an event to a worker or server and do what it asks for."""
        for action in self._participants[index].handle(event, self.now):
            match action:
                case Compute():
                    self._evaluations.receive(index, self.now)
                    self._computing.gradient(index, action.batch_size)
                case Send():
                    self._transport.send(action.peer, action.message)
                case Report():
                    self.recorder.iteration(index, action, self.now)
                case Profile():
                    self._computing.profile(index, action.batch_sizes)
                case Stop():
                    self._is_any_done = True
                    self._drop(index)
                case Joined():
                    self._on_joined(index, action)
                case Elimination():
                    assert self._churn is not None
                    self._churn.left(index)
                case Abort():
                    self._stopped_by, self.abort_reason = "abort", action.reason
                case _:
                    assert_never(action)

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

    def _on_news(self, index: int, event: Event) -> None:
        self._tell(index, event)
        if isinstance(event, PeerFound):
            self._tell_capacities()

    def _on_came(self, index: int) -> None:
        """A participant's process begins."""
        assert self._churn is not None
        if index < len(self._nodes):
            absent, incarnation = self._churn.out_of_reach(index), self._incarnation(index)
            node = self._nodes[index] = self._newcomers.node(index, incarnation, absent, self.now)
            self._participants[index] = node.worker
        elif self._incarnation(index):
            self._stopped_by, self.abort_reason = "abort", f"what server {index} had of the parameters is lost"
        self._tell(index, Started(joining=True))

    def _on_joined(self, index: int, joined: Joined) -> None:
        """A worker takes part."""
        assert isinstance(self._transport, GuardedCarrier)
        self._members.add(index)
        what: What = "begins_anew" if joined.sponsor is None else "joined"
        row = MembershipRow(self.now, index, self._incarnation(index), what, joined.sponsor, joined.seconds)
        fetched = self._transport.fetched.pop(index, 0)
        self.recorder.membership(row._replace(bytes=fetched, iteration=joined.iteration))

    def _on_went(self, index: int, for_good: bool) -> None:
        """A participant's process has ended, with all that it was at."""
        if index >= len(self._nodes):
            return
        unfinished = self._nodes[index].worker.unfinished(self.now)
        self.recorder.lost(index, unfinished, self._computing.drop(index), self.now)
        self._members.discard(index)
        if for_good:
            self._drop(index)

    def _drop(self, index: int) -> None:
        """A worker will do no more iterations."""
        self._running.discard(index)
        if not self._running:
            self._stopped_by = "iterations" if self._is_any_done else "stall"

    def _on_cut(self, one: int, other: int) -> None:
        """All between two is lost that has not left."""
        assert isinstance(self._transport, GuardedCarrier)
        for transfer, carried in self._transport.cut(one, other).begun:
            self.recorder.carried(transfer, carried)
            self.recorder.cut_off(transfer)

    def _incarnation(self, index: int) -> int:
        """How often a participant's process has ended."""
        return 0 if self._churn is None else self._churn.incarnations[index]

    def _tell_capacities(self) -> None:
        """Tell those workers that go by an oracle what their links can carry."""
        if not self._needs_oracle:
            return
        pairs = [(each, peer) for each in sorted(self._members) for peer in self._nodes[each].worker.setup.peers]
        for (sender, peer), (alone, shared) in zip(pairs, self._transport.bytes_per_second(pairs), strict=True):
            self._tell(sender, LinkCapacity(peer, alone, shared))

    def _sample_regularly(self) -> None:
        if self._sample_every is not None:
            self.recorder.queues(self._transport.queues())
            self._event_queue.after(self._sample_every, self._sample_regularly, background=True)

    def _evaluate_regularly(self) -> None:
        self._evaluate()
        if self.now + self._evaluate_every < self._end:
            self._event_queue.after(self._evaluate_every, self._evaluate_regularly, background=True)

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
        state = {name: value for name, value in self.__dict__.items() if name != "_newcomers"}
        # First: a carrier may hand on methods of its own, none of which is to be come upon before it.
        return {"_transport": self._transport, **state}
