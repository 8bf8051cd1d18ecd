"""The worker: one iteration after another, as its four choices say.

Sans-I/O: `handle(event, now)` takes what happened and returns what is to be done; a driver with a clock, real or
virtual, stands around it. An iteration is (DLion, HPDC'21, and its ancestor TF.AKO):

1. compute a gradient on a batch of the size that *batching* says;
2. send what *exchange* makes of it;
3. wait until *synchronization* lets it go on;
4. merge the weights that *knowledge transfer* has fetched, apply the own gradient and those received in one step.

Who takes part in that may change at any time: see `membership` and `joining`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import assert_never

from dlion_sim.protocol.barrier import Barrier, cause
from dlion_sim.protocol.choices import Choices, Due, OnLoss, Setup
from dlion_sim.protocol.events import (
    Abort,
    Action,
    Compute,
    Event,
    GradientReady,
    Joined,
    Leave,
    Left,
    LinkCapacity,
    MessageArrived,
    MessageSent,
    MessageTimed,
    PeerFound,
    PeerLost,
    Profile,
    ProfileReady,
    Report,
    Send,
    Started,
    Stop,
    Unfinished,
)
from dlion_sim.protocol.faults import MalformedMessageError
from dlion_sim.protocol.handover import messages, state_of
from dlion_sim.protocol.joining import Joining
from dlion_sim.protocol.membership import Membership
from dlion_sim.protocol.membership_messages import MEMBERSHIP, Begins, Hello, Leaving, State, StateRequest
from dlion_sim.protocol.messages import Channel, Contribution, Message
from dlion_sim.protocol.phases import Move, Phase, after
from dlion_sim.protocol.updates import Incoming, LocalGradient, Update


class Worker:
    """One worker's whole state. `iteration` counts the iterations done; `replica` holds the parameters."""

    def __init__(self, setup: Setup, choices: Choices) -> None:
        self.setup = setup
        self.choices = choices
        self.replica = setup.replica
        self.phase = Phase.READY
        self.iteration = 0
        self._batch_size = 0
        self._own: tuple[GradientReady, Update | None] | None = None
        self._skipped = 0
        """Iterations to leave out after the last one."""
        self._now = 0.0
        self._since = 0.0
        """When the present phase began."""
        self._loss = math.inf
        """Of its last gradient."""
        self._members = Membership(setup, choices)
        self._barrier = Barrier(setup, choices, self._members)
        self._joining: Joining | None = None
        """Until it takes part."""
        self._is_to_leave = False
        """Once the gradient that is being computed is sent."""
        self._has_left = False
        self._inbox: list[Update] = []
        self._receivers = choices.receivers()

    def handle(self, event: Event, now: float) -> list[Action]:
        """Take in an event at time `now` (seconds) and return what to do, in order.

        Raises MalformedMessageError, with nothing changed, for a message that no honest peer sends, and
        LocalProtocolError for an event that cannot happen now.
        """
        self._now = now
        match event:
            case Started() | ProfileReady() | GradientReady():
                return self._go_on(event)
            case MessageArrived():
                return [*self._receive(event.message), *self._step_if_allowed(event)]
            case MessageSent():
                if self.setup.links.is_connected(event.peer):
                    self.setup.links.sent(event.peer, now)
                return [*self._step_if_allowed(event), *self._leave_if_done()]
            case MessageTimed():
                if self.setup.links.is_connected(event.peer):
                    self.setup.links.timed(event.peer, event.size, event.seconds)
                return []
            case PeerLost():
                return [*self._lose(event.peer), *self._step_if_allowed(event), *self._leave_if_done()]
            case PeerFound():
                return self._find(event.peer)
            case Leave():
                return self._prepare_to_leave(event.deadline)
            case LinkCapacity():
                self.setup.links.told(event.peer, event.alone, event.shared)
                return []
            case _:
                assert_never(event)

    def _go_on(self, event: Started | ProfileReady | GradientReady) -> list[Action]:
        """Take up what the worker was waiting for from its own machine."""
        was, self.phase = self.phase, after(self.phase, type(event))
        match event:
            case _ if was in (Phase.STOPPED, Phase.LEAVING):
                return []
            case Started():
                return self._start(event.joining)
            case ProfileReady():
                return [*self._queue(self.choices.batching.measured(event.measurements)), *self._compute()]
            case GradientReady():
                self._since = self._now
                sends = self._exchange(event)
                return [*sends, *(self._leave() if self._is_to_leave else self._step_if_allowed(event))]
            case _:
                assert_never(event)

    def unfinished(self, now: float) -> Unfinished | None:
        """What it is at, at time `now` (seconds); None before it takes part and once it has stopped."""
        lasted = max(0.0, now - self._since)
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
            case Phase.READY | Phase.JOINING | Phase.STOPPED | Phase.LEAVING:
                return None
            case _:
                assert_never(self.phase)

    def _move(self, move: Move) -> None:
        self.phase, self._since = after(self.phase, move), self._now

    def _start(self, joining: bool) -> list[Action]:
        """Begin; or ask others for their state. Who is not there, or not connected yet, is lost before it began."""
        for peer in self.setup.peers:
            if joining or peer in self.setup.absent:
                self._members.remove(peer)
                reason = self._reason_to_give_up(peer, "go_on")
                if reason and peer in self.setup.absent:
                    return self._give_up(reason)
        if not joining:
            return self._begin()
        self._move(Move.JOIN)
        self._joining = Joining(self.setup, self.choices, self._members, self._now)
        return self._join()

    def _begin(self) -> list[Action]:
        batch_sizes = self.choices.batching.profile()
        if not batch_sizes:
            return self._compute()
        self._move(Move.PROFILE)
        return [Profile(batch_sizes)]

    def _compute(self) -> list[Action]:
        if self.setup.iterations is not None and self.iteration >= self.setup.iterations:
            self._move(Move.FINISH)
            return [*self._answer(), Stop()]
        self._move(Move.COMPUTE)
        answers = self._answer()
        self._batch_size = self.choices.batching.batch_size(self.iteration)
        entered = self.choices.synchronization.entered(self.iteration)
        began = [Send(*each) for each in self.choices.exchange.began(self.iteration, self._batch_size)]
        return [*answers, *self._queue([*entered, *began]), Compute(self._batch_size)]

    def _exchange(self, ready: GradientReady) -> list[Action]:
        self._loss = ready.loss
        factor = self._factor(len(self._members.counting(self.iteration)))
        own = factor(Contribution(self.iteration, self._batch_size))
        self.setup.links.computed(ready.seconds)
        outgoing = self.choices.exchange.outgoing(
            LocalGradient(self.iteration, self._batch_size, ready.gradient, ready.seconds, own, self._now)
        )
        self._own = ready, outgoing.own
        measured = self.choices.batching.measured([(self._batch_size, ready.seconds)])
        return self._queue([*measured, *(Send(peer, message) for peer, message in outgoing.messages)])

    def _receive(self, message: Message) -> list[Action]:
        sender = message.sender
        if self.phase is Phase.LEAVING or sender in self._members.departed:
            return []
        if not self.setup.links.is_connected(sender):
            raise MalformedMessageError(f"{sender} is no peer of {self.setup.worker}")
        if type(message.body) in MEMBERSHIP:
            return self._hear(message)
        receiver = self._receivers.get(type(message.body))
        if receiver is None:
            raise MalformedMessageError(f"none of its choices takes a message of the kind {message.body.wire_kind!r}")
        if not isinstance(message.body, Contribution):
            if not self._members.may_say(message):
                raise MalformedMessageError(f"{sender} sends a {message.body.kind} before it has begun")
            return self._queue(receiver.received(message))
        update = Update.of(message)
        self.choices.exchange.arrived(update)
        if self._members.admits(update):
            self._inbox.append(update)
        return []

    def _step_if_allowed(self, event: Event) -> list[Action]:
        """End the iteration if it may end, now that `event` has happened."""
        if self.phase is Phase.CATCHING_UP and not self._barrier.holds_up(last := self.iteration + self._skipped - 1):
            self._apply(last, None, self._due(last))
            self.iteration = last + 1
            return self._compute()
        if self.phase is not Phase.WAITING or self._own is None or self._barrier.holds_up(self.iteration):
            return []
        ready, own = self._own
        merges = self.choices.knowledge_transfer.merges()
        for merge in merges:
            self.replica.merge(merge.weights, merge.share)
        received = self._due(self.iteration)
        applied = self._apply(self.iteration, own, received)
        lags = [self.iteration - update.body.iteration for update in received]
        self._skipped = self.choices.synchronization.skipped(self.iteration)
        self.iteration += 1
        self._own = None
        waited = self._now - self._since
        waited_for, wait_reason = cause(event) if waited > 0 else (None, None)
        report = Report(
            iteration=self.iteration,
            loss=ready.loss,
            batch_size=self._batch_size,
            global_batch_size=self.choices.batching.global_batch_size(self.iteration - 1),
            staleness=sum(lags) / len(lags) if lags else None,
            applied=applied,
            merged=len(merges),
            compute_seconds=ready.seconds,
            wait_seconds=waited,
            waited_for=waited_for,
            wait_reason=wait_reason,
        )
        transfer = self._queue(self.choices.knowledge_transfer.stepped(self.iteration, ready.loss))
        if self._skipped and self.choices.exchange.catches_up:
            self._move(Move.CATCH_UP)
            return [report, *transfer, *self._answer(), *self._step_if_allowed(event)]
        self.iteration += self._skipped
        return [report, *transfer, *self._compute()]

    def _apply(self, iteration: int, own: Update | None, received: list[Update]) -> int:
        peers = self._members.counting(iteration)
        applied = self.choices.exchange.apply(Incoming(iteration, own, received, self._factor(len(peers)), peers))
        self._members.ended(iteration)
        return applied

    def _due(self, iteration: int) -> list[Update]:
        """Take the received contributions that belong to `iteration` out of the inbox."""
        now, self._inbox = self._sorted_out(self._inbox, iteration)
        last, self._members.last_words = self._sorted_out(self._members.last_words, iteration)
        return [*now, *last]

    def _sorted_out(self, updates: list[Update], iteration: int) -> tuple[list[Update], list[Update]]:
        """Those that are due at the end of `iteration`, and those that are due later."""
        sorted_out: dict[Due, list[Update]] = {"now": [], "later": [], "never": []}
        for update in updates:
            sorted_out[self.choices.synchronization.due(update.body.iteration, iteration)].append(update)
        return sorted_out["now"], sorted_out["later"]

    def _factor(self, peers: int) -> Callable[[Contribution], float]:
        """By which contributions enter the mean over this worker and so many peers, whoever of them was heard."""
        return lambda contribution: self.choices.batching.weight(contribution, self._batch_size) / (peers + 1)

    def _queue(self, actions: list[Action]) -> list[Action]:
        """The same actions, the data among them noted, since choices watch the links."""
        for action in actions:
            if isinstance(action, Send) and action.message.body.channel is Channel.DATA:
                self.setup.links.queued(action.peer, action.message.size, self._now)
        return actions

    # Who comes and goes

    @property
    def _hello(self) -> Hello:
        """How it stands."""
        if self._joining:
            return Hello(0, 0, 0.0, 0, member=False)
        match self.phase:
            case Phase.COMPUTING | Phase.WAITING:
                # Of this one, something may have left already; nor does it get what those who have left contributed.
                first = max(self.iteration, *(word.body.iteration for word in self._members.last_words), 0) + 1
            case Phase.CATCHING_UP:
                first = self.iteration + self._skipped
            case _:
                first = self.iteration
        return Hello(first, self.iteration, self._loss, self.setup.links.waiting, member=True)

    def _find(self, peer: int) -> list[Action]:
        """Tell a peer that is there now how this worker stands."""
        if self.phase is Phase.LEAVING:
            return [Send(peer, Message(self.setup.worker, Leaving(self.iteration)))]
        is_awaited = peer in self._members.peers
        self._members.found(peer)
        if is_awaited:
            self.choices.synchronization.lost(peer)  # It is another one that comes back.
        self._barrier.changed()
        if self._joining:
            self._joining.met(peer)
        return [self._members.greet(peer, self._hello)]

    def _lose(self, peer: int) -> list[Action]:
        """Go on without a peer, as if it had never been there; or wait for it, or not at all."""
        if self._members.lost(peer):
            self._take_from_inbox(peer)
            return self._go_on_without(peer, self.setup.on_loss)
        if self._joining:
            self._joining.lost(peer)
        return self._join()

    def _go_on_without(self, peer: int, on_loss: OnLoss) -> list[Action]:
        self._barrier.changed()
        if self._joining:
            self._joining.lost(peer)
        reason = self._reason_to_give_up(peer, on_loss)
        return self._give_up(reason) if reason else self._join()

    def _reason_to_give_up(self, peer: int, on_loss: OnLoss) -> str | None:
        """Let the choices do without a peer, but for synchronization if that waits; returns why nothing can go on."""
        synchronization = self.choices.synchronization
        reasons = [choice.lost(peer) for choice in self.choices.all if choice is not synchronization]
        if on_loss != "wait":
            reason = synchronization.lost(peer)
            reasons += [reason] if on_loss == "abort" else []
        return next(filter(None, reasons), None)

    def _give_up(self, reason: str) -> list[Action]:
        if self.phase in (Phase.STOPPED, Phase.LEAVING):
            return []
        self._move(Move.GIVE_UP)
        return [Abort(reason)]

    def _hear(self, message: Message) -> list[Action]:
        """What a peer says of its coming or going."""
        sender = message.sender
        match message.body:
            case Hello() as hello:
                is_settled = self._members.heard(sender, hello)
                if not self._joining:
                    return self._take_in(sender, hello.first) if is_settled else []
                if hello.member:
                    self._joining.heard(sender, hello, self._take_in(sender, hello.first))
                return self._join()
            case Begins(iteration):
                self._members.begins(sender, iteration)
                return self._take_in(sender, iteration)
            case StateRequest(iteration):
                self._members.requested(sender, iteration)
                return self._answer()
            case State():
                if not self._joining:
                    raise MalformedMessageError("a state that nobody has asked for")
                self._joining.take(message)
                return self._join()
            case Leaving(iteration):
                self._members.left(sender, self._take_from_inbox(sender))
                if self._joining:
                    self._joining.left(sender, iteration)
                return self._go_on_without(sender, "go_on")
            case _:
                raise TypeError(f"a {message.body.kind} says nothing of that")

    def _take_in(self, peer: int, iteration: int) -> list[Action]:
        """A peer takes part from `iteration` on."""
        actions = [action for choice in self.choices.all for action in choice.joined(peer, iteration)]
        reasons = [action.reason for action in actions if isinstance(action, Abort)]
        return self._give_up(reasons[0]) if reasons else self._queue(actions)

    def _take_from_inbox(self, peer: int) -> list[Update]:
        """A peer's contributions, which are no longer there."""
        taken = [update for update in self._inbox if update.sender == peer]
        self._inbox = [update for update in self._inbox if update.sender != peer]
        return taken

    def _answer(self) -> list[Action]:
        """Hand the state on to newcomers who can begin with it."""
        if self.phase is Phase.JOINING:
            return []
        asked = self._members.answerable(math.inf if self.phase is Phase.STOPPED else self.iteration)
        tensors = state_of(self.setup, self.choices.all, self._members.applied(self._inbox)) if asked else []
        return [
            Send(peer, message)
            for peer, least in asked.items()
            for message in messages(self.setup.worker, max(self.iteration, least), tensors)
        ]

    def _join(self) -> list[Action]:
        """Go on with joining, as far as that is possible by now."""
        if self._joining is None or self.phase is not Phase.JOINING:
            return []
        asked = self._joining.proceed()
        outcome = self._joining.outcome
        return [*asked, *self._take_part(self._joining, *outcome)] if outcome else asked

    def _take_part(self, joining: Joining, iteration: int, sponsor: int | None) -> list[Action]:
        """Begin with `iteration`: from now on it is a member itself."""
        self._joining, self.iteration = None, iteration
        told = joining.begin(iteration)
        greetings = [self._members.greet(peer, self._hello) for peer in self._members.unsettled]
        self._inbox = [update for update in self._inbox if self._members.admits(update)]
        self._members.begin(iteration)
        self._barrier.changed()
        return [Joined(iteration, sponsor, self._now - joining.began), *told, *greetings, *self._begin()]

    def _prepare_to_leave(self, deadline: float | None) -> list[Action]:
        """Leave once the gradient that is being computed is sent, if it is likely to be there in time."""
        seconds = self.setup.links.compute_seconds
        in_time = deadline is None or seconds is None or self._since + seconds <= deadline
        if self.phase is Phase.LEAVING or (self.phase is Phase.COMPUTING and in_time):
            self._is_to_leave = True
            return []
        return self._leave()

    def _leave(self) -> list[Action]:
        leaving = Message(self.setup.worker, Leaving(self.iteration + (self.phase is Phase.WAITING)))
        self._move(Move.LEAVE)
        self._joining = None
        return [*self._queue([Send(peer, leaving) for peer in self.setup.peers]), *self._leave_if_done()]

    def _leave_if_done(self) -> list[Action]:
        """It has left when all data has."""
        if self.phase is not Phase.LEAVING or self._has_left or self.setup.links.waiting:
            return []
        self._has_left = True
        return [Left()]
