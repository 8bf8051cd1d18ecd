"""A worker's iterations, as its four choices define them (DLion, HPDC'21, and its ancestor TF.AKO). Without I/O.

An iteration:

1. compute a gradient on a batch of the size that *batching* says;
2. send the messages that *exchange* makes of it;
3. wait until *synchronization* and *exchange* allow the end of the iteration;
4. merge the weights that *knowledge transfer* has fetched, then apply the own and the received contributions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import assert_never

from dlion_sim.protocol.barrier import Barrier, cause
from dlion_sim.protocol.choices import Choices, Due, Setup
from dlion_sim.protocol.events import (
    Abort,
    Action,
    Compute,
    Event,
    GradientReady,
    Profile,
    Report,
    Send,
    Stop,
    Unfinished,
)
from dlion_sim.protocol.membership import Membership
from dlion_sim.protocol.membership_messages import Hello
from dlion_sim.protocol.messages import Channel, Contribution, MalformedMessageError, Message, Weights
from dlion_sim.protocol.phases import Move, Phase, after
from dlion_sim.protocol.state_transfer import messages, state_of
from dlion_sim.protocol.updates import Incoming, LocalGradient, Update


class Training:
    """The iterations of a worker: its phase, iteration, and received contributions still to be applied."""

    def __init__(self, setup: Setup, choices: Choices, members: Membership, barrier: Barrier) -> None:
        self.phase = Phase.READY
        self.iteration = 0
        """Iterations done."""
        self.now = 0.0
        """The time of the event being handled (seconds)."""
        self.since = 0.0
        """The time at which the present phase began (seconds)."""
        self._setup = setup
        self._choices = choices
        self._members = members
        self._barrier = barrier
        self._abandoned: Unfinished | None = None
        """The gradient that it did not complete before it left."""
        self._batch_size = 0
        self._own: tuple[GradientReady, Update | None] | None = None
        self._skipped = 0
        """Iterations to skip after the present one."""
        self._loss = math.inf
        """That of its last gradient."""
        self._inbox: list[Update] = []
        self._receivers = choices.receivers()

    @property
    def hello(self) -> Hello:
        match self.phase:
            case Phase.COMPUTING | Phase.WAITING:
                # Parts of the present iteration may have been sent already; contributions of departed workers do not
                # reach it.
                first = max(self.iteration, *(update.body.iteration for update in self._members.final_updates), 0) + 1
            case Phase.CATCHING_UP:
                first = self.iteration + self._skipped
            case _:
                first = self.iteration
        return Hello(first, self.iteration, self._loss, self._setup.links.waiting, member=True)

    def unfinished(self, now: float) -> Unfinished | None:
        """The unfinished iteration at time `now` (seconds); None before the first and once it has stopped.

        While it leaves: the gradient that it gave up, if there was one.
        """
        lasted = max(0.0, now - self.since)
        match self.phase:
            case Phase.PROFILING:
                return Unfinished("profile", 0, lasted)
            case Phase.COMPUTING:
                return Unfinished("unfinished", self.iteration + 1, lasted)
            case Phase.WAITING | Phase.CATCHING_UP:
                computed = self._own[0].seconds if self._own else 0.0
                last = self.iteration + (self._skipped - 1 if self.phase is Phase.CATCHING_UP else 0)
                waited_for = self._barrier.furthest_behind(last)
                return Unfinished("unfinished", self.iteration + 1, computed, lasted, *waited_for)
            case Phase.LEAVING:
                return self._abandoned
            case Phase.READY | Phase.JOINING | Phase.RESTING | Phase.STOPPED:
                return None
            case _:
                assert_never(self.phase)

    def move(self, what: type[Event] | Move) -> None:
        """Enter the phase that `what` leads to. Raises LocalProtocolError if it cannot happen in the present one."""
        if what is Move.LEAVE and self.phase is Phase.COMPUTING:
            self._abandoned = self.unfinished(self.now)
        self.phase, self.since = after(self.phase, what), self.now

    def abort(self, reason: str) -> list[Action]:
        if self.phase in (Phase.STOPPED, Phase.LEAVING):
            return []
        self.move(Move.ABORT)
        return [Abort(reason)]

    def begin(self) -> list[Action]:
        """Time the machine if batching asks for it; then begin the present iteration."""
        batch_sizes = self._choices.batching.profile()
        if not batch_sizes:
            return self._compute()
        self.move(Move.PROFILE)
        return [Profile(batch_sizes)]

    def profiled(self, measurements: Sequence[tuple[int, float]]) -> list[Action]:
        """The machine has been timed: (batch size, seconds) each."""
        return [*self.queue(self._choices.batching.measured(measurements)), *self._compute()]

    def computed(self, ready: GradientReady) -> list[Action]:
        """The iteration's gradient is ready: send the messages that the exchange makes of it."""
        self._loss = ready.loss
        factor = self._factor(len(self._members.counting(self.iteration)))
        own = factor(Contribution(self.iteration, self._batch_size))
        self._setup.links.computed(ready.seconds)
        outgoing = self._choices.exchange.outgoing(
            LocalGradient(self.iteration, self._batch_size, ready.gradient, ready.seconds, own, self.now)
        )
        self._own = ready, outgoing.own
        measured = self._choices.batching.measured([(self._batch_size, ready.seconds)])
        return self.queue([*measured, *(Send(peer, message) for peer, message in outgoing.messages)])

    def received(self, message: Message) -> list[Action]:
        """A peer's message for one of the choices has arrived. Raises MalformedMessageError if none receives its
        kind."""
        receiver = self._receivers.get(type(message.body))
        if receiver is None:
            raise MalformedMessageError(f"none of its choices takes a message of the kind {message.body.wire_kind!r}")
        if not isinstance(message.body, Contribution):
            if not self._members.may_send(message):
                raise MalformedMessageError(f"{message.sender} sends a {message.body.kind} before its first iteration")
            if self.phase is Phase.STOPPED and isinstance(message.body, Weights):  # They would be kept for a merge.
                return []
            return self.queue(receiver.received(message))
        update = Update.of(message)
        self._choices.exchange.arrived(update)
        if self.phase is Phase.STOPPED:  # Nothing would take it out again.
            return []
        # While this worker joins, all are kept: which of them the state lacks is known with it.
        if self._members.admits(update) or self.phase is Phase.JOINING:
            self._inbox.append(update)
        return []

    def take_updates_of(self, peer: int) -> list[Update]:
        """Remove a peer's contributions from the inbox and return them."""
        taken = [update for update in self._inbox if update.sender == peer]
        self._inbox = [update for update in self._inbox if update.sender != peer]
        return taken

    def drop_obsolete(self) -> None:
        """Keep only contributions that count, now that this worker's first iteration is known."""
        self._inbox = [update for update in self._inbox if self._members.admits(update)]

    def send_state(self) -> list[Action]:
        if self.phase is Phase.JOINING:
            return []
        asked = self._members.take_ready_requests(math.inf if self.phase is Phase.STOPPED else self.iteration)
        tensors = state_of(self._setup, self._choices.all, self._members.applied(self._inbox)) if asked else []
        return [
            Send(peer, message)
            for peer, least in asked.items()
            for message in messages(self._setup.worker, max(self.iteration, least), tensors)
        ]

    def end_iteration_if_allowed(self, event: Event) -> list[Action]:
        """End the iteration after `event`, if it may end, and begin the next one; or end a rest."""
        if self.phase is Phase.RESTING and not self._choices.exchange.rests:
            return self._compute()
        if self.phase is Phase.CATCHING_UP and not self._barrier.blocks(last := self.iteration + self._skipped - 1):
            self._apply(last, None, self._due(last))
            self.iteration = last + 1
            return self._compute()
        if self.phase is not Phase.WAITING or self._own is None or self._barrier.blocks(self.iteration):
            return []
        ready, own = self._own
        merged = self._choices.knowledge_transfer.merge()
        received = self._due(self.iteration)
        applied = self._apply(self.iteration, own, received)
        lags = [self.iteration - update.body.iteration for update in received]
        self._skipped = self._choices.synchronization.skipped(self.iteration)
        self.iteration += 1
        self._own = None
        waited = self.now - self.since
        waited_for, wait_reason = cause(event) if waited > 0 else (None, None)
        report = Report(
            iteration=self.iteration,
            loss=ready.loss,
            batch_size=self._batch_size,
            global_batch_size=self._choices.batching.global_batch_size(self.iteration - 1),
            staleness=sum(lags) / len(lags) if lags else None,
            applied=applied,
            merged=merged,
            compute_seconds=ready.seconds,
            wait_seconds=waited,
            waited_for=waited_for,
            wait_reason=wait_reason,
            dropped=self._choices.exchange.dropped(),
        )
        transfer = self.queue(self._choices.knowledge_transfer.stepped(self.iteration, ready.loss))
        if self._skipped and self._choices.exchange.catches_up:
            self.move(Move.CATCH_UP)
            return [report, *transfer, *self.send_state(), *self.end_iteration_if_allowed(event)]
        self.iteration += self._skipped
        return [report, *transfer, *self._compute()]

    def queue(self, actions: list[Action]) -> list[Action]:
        """The same actions; data messages among them are registered with the link monitor."""
        for action in actions:
            if isinstance(action, Send) and action.message.body.channel is Channel.DATA:
                self._setup.links.queued(action.peer, action.message.size, self.now)
        return actions

    def _compute(self) -> list[Action]:
        if self._setup.iterations is not None and self.iteration >= self._setup.iterations:
            self.move(Move.FINISH)
            return [*self.send_state(), Stop()]
        if self._choices.exchange.rests:
            self.move(Move.REST)
            return self.send_state()
        self.move(Move.COMPUTE)
        state_messages = self.send_state()
        self._batch_size = self._choices.batching.batch_size(self.iteration)
        entered = self._choices.synchronization.entered(self.iteration)
        began = [Send(*each) for each in self._choices.exchange.began(self.iteration, self._batch_size)]
        return [*state_messages, *self.queue([*entered, *began]), Compute(self._batch_size)]

    def _apply(self, iteration: int, own: Update | None, received: list[Update]) -> int:
        peers = self._members.counting(iteration)
        applied = self._choices.exchange.apply(Incoming(iteration, own, received, self._factor(len(peers)), peers))
        self._members.ended(iteration)
        return applied

    def _due(self, iteration: int) -> list[Update]:
        """Remove the contributions that are due in `iteration` from the inbox and return them."""
        now, self._inbox = self._by_time(self._inbox, iteration)
        last, self._members.final_updates = self._by_time(self._members.final_updates, iteration)
        return [*now, *last]

    def _by_time(self, updates: list[Update], iteration: int) -> tuple[list[Update], list[Update]]:
        """The updates that are due at the end of `iteration`, and those that are due later."""
        by_time: dict[Due, list[Update]] = {"now": [], "later": [], "never": []}
        for update in updates:
            by_time[self._choices.synchronization.due(update.body.iteration, iteration)].append(update)
        return by_time["now"], by_time["later"]

    def _factor(self, peers: int) -> Callable[[Contribution], float]:
        """The weight of a contribution in the mean over this worker and so many peers."""
        return lambda contribution: self._choices.batching.weight(contribution, self._batch_size) / (peers + 1)
