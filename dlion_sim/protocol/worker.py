"""The worker: takes part in a run, from when it begins or joins until it stops or leaves.

Sans-I/O: `handle(event, now)` takes what happened and returns what is to be done; a driver with a clock, real or
virtual, stands around it. What it does as long as it takes part is its `training`; with whom may change at any time,
see `membership` and `joining`.
"""

from __future__ import annotations

from typing import assert_never

from dlion_sim.protocol.barrier import Barrier
from dlion_sim.protocol.choices import Choices, OnLoss, Setup
from dlion_sim.protocol.events import (
    Abort,
    Action,
    Elimination,
    Event,
    GradientReady,
    Joined,
    Leave,
    LinkCapacity,
    MessageArrived,
    MessageSent,
    MessageTimed,
    PeerFound,
    PeerLost,
    ProfileReady,
    Send,
    Started,
    Unfinished,
)
from dlion_sim.protocol.faults import MalformedMessageError
from dlion_sim.protocol.joining import Joining
from dlion_sim.protocol.membership import Membership
from dlion_sim.protocol.membership_messages import MEMBERSHIP, Begins, Hello, Leaving, State, StateRequest
from dlion_sim.protocol.messages import Message
from dlion_sim.protocol.phases import Move, Phase
from dlion_sim.protocol.training import Training


class Worker:
    """One worker's whole state. `replica` holds the parameters."""

    def __init__(self, setup: Setup, choices: Choices) -> None:
        self.setup = setup
        self.choices = choices
        self.replica = setup.replica
        self._members = Membership(setup, choices)
        self._barrier = Barrier(setup, choices, self._members)
        self._training = Training(setup, choices, self._members, self._barrier)
        self._joining: Joining | None = None
        """Until it takes part."""
        self._is_to_leave = False
        """Once the gradient that is being computed is sent."""
        self._has_left = False

    @property
    def phase(self) -> Phase:
        """What it is doing."""
        return self._training.phase

    @property
    def iteration(self) -> int:
        """How many iterations are done."""
        return self._training.iteration

    def unfinished(self, now: float) -> Unfinished | None:
        """What it is at, at time `now` (seconds); None before it takes part and once it has stopped.

        As it leaves that is the gradient that it gave up, if it was at one.
        """
        return self._training.unfinished(now)

    def handle(self, event: Event, now: float) -> list[Action]:
        """Take in an event at time `now` (seconds) and return what to do, in order.

        Raises MalformedMessageError, with nothing changed, for a message that no honest peer sends, and
        LocalProtocolError for an event that cannot happen now.
        """
        links, training = self.setup.links, self._training
        training.now = now
        match event:
            case Started() | ProfileReady() | GradientReady():
                return self._go_on(event)
            case MessageArrived():
                return [*self._receive(event.message), *training.go_on_if_allowed(event)]
            case MessageSent():
                if links.is_connected(event.peer):
                    links.sent(event.peer, now)
                return [*training.go_on_if_allowed(event), *self._leave_if_done()]
            case MessageTimed():
                if links.is_connected(event.peer):
                    links.timed(event.peer, event.size, event.seconds)
                return []
            case PeerLost():
                return [*self._lose(event.peer), *training.go_on_if_allowed(event), *self._leave_if_done()]
            case PeerFound():
                return self._find(event.peer)
            case Leave():
                return self._prepare_to_leave(event.deadline)
            case LinkCapacity():
                links.told(event.peer, event.alone, event.shared)
                return []
            case _:
                assert_never(event)

    def _go_on(self, event: Started | ProfileReady | GradientReady) -> list[Action]:
        """Take up what the worker was waiting for from its own machine."""
        training = self._training
        training.move(type(event))
        match event:
            case _ if training.phase in (Phase.STOPPED, Phase.LEAVING):
                return []
            case Started():
                return self._start(event.joining)
            case ProfileReady():
                return training.profiled(event.measurements)
            case GradientReady():
                sends = training.computed(event)
                return [*sends, *(self._leave() if self._is_to_leave else training.go_on_if_allowed(event))]
            case _:
                assert_never(event)

    def _start(self, joining: bool) -> list[Action]:
        """Begin; or ask others for their state. Who is not there, or not connected yet, is lost before it began."""
        for peer in self.setup.peers:
            if joining or peer in self.setup.absent:
                self._members.remove(peer)
                reason = self._reason_to_give_up(peer, "go_on", left=True)
                if reason and peer in self.setup.absent:
                    return self._training.give_up(reason)
        if not joining:
            return self._training.begin()
        self._training.move(Move.JOIN)
        self._joining = Joining(self.setup, self.choices, self._members, self._training.now)
        return self._join()

    def _receive(self, message: Message) -> list[Action]:
        sender = message.sender
        if self.phase is Phase.LEAVING or sender in self._members.departed:
            return []
        if not self.setup.links.is_connected(sender):
            raise MalformedMessageError(f"{sender} is no peer of {self.setup.worker}")
        return self._hear(message) if type(message.body) in MEMBERSHIP else self._training.received(message)

    @property
    def _hello(self) -> Hello:
        """How it stands."""
        if self._joining:
            return Hello(0, 0, 0.0, 0, member=False)
        return self._training.hello

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
            self._training.taken_from(peer)
            return self._go_on_without(peer, self.setup.on_loss)
        if self._joining:
            self._joining.lost(peer)
        return self._join()

    def _go_on_without(self, peer: int, on_loss: OnLoss, *, left: bool = False) -> list[Action]:
        self._barrier.changed()
        if self._joining:
            self._joining.lost(peer)
        reason = self._reason_to_give_up(peer, on_loss, left=left)
        return self._training.give_up(reason) if reason else self._join()

    def _reason_to_give_up(self, peer: int, on_loss: OnLoss, *, left: bool) -> str | None:
        """Let the choices do without a peer, but for synchronization if that waits; returns why nothing can go on."""
        synchronization = self.choices.synchronization
        others = [choice for choice in self.choices.all if choice is not synchronization]
        reasons = [choice.left(peer) if left else choice.lost(peer) for choice in others]
        if on_loss != "wait":
            reason = synchronization.lost(peer)
            reasons += [reason] if on_loss == "abort" else []
        return next(filter(None, reasons), None)

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
                return self._training.hand_over()
            case State():
                if not self._joining:
                    raise MalformedMessageError("a state that nobody has asked for")
                self._joining.take(message)
                return self._join()
            case Leaving(iteration):
                self._members.left(sender, self._training.taken_from(sender))
                if self._joining:
                    self._joining.left(sender, iteration)
                return self._go_on_without(sender, "go_on", left=True)
            case _:
                raise TypeError(f"a {message.body.kind} says nothing of that")

    def _take_in(self, peer: int, iteration: int) -> list[Action]:
        """A peer takes part from `iteration` on."""
        actions = [action for choice in self.choices.all for action in choice.joined(peer, iteration)]
        reasons = [action.reason for action in actions if isinstance(action, Abort)]
        return self._training.give_up(reasons[0]) if reasons else self._training.queue(actions)

    def _join(self) -> list[Action]:
        """Go on with joining, as far as that is possible by now."""
        if self._joining is None or self.phase is not Phase.JOINING:
            return []
        asked = self._joining.proceed()
        outcome = self._joining.outcome
        return [*asked, *self._take_part(self._joining, *outcome)] if outcome else asked

    def _take_part(self, joining: Joining, iteration: int, sponsor: int | None) -> list[Action]:
        """Begin with `iteration`: from now on it is a member itself."""
        training = self._training
        self._joining, training.iteration = None, iteration
        told = joining.begin(iteration)
        greetings = [self._members.greet(peer, self._hello) for peer in self._members.unsettled]
        training.sort_out()
        self._members.begin(iteration)
        self._barrier.changed()
        return [Joined(iteration, sponsor, training.now - joining.began), *told, *greetings, *training.begin()]

    def _prepare_to_leave(self, deadline: float | None) -> list[Action]:
        """Leave once the gradient that is being computed is sent, if it is likely to be there in time."""
        seconds = self.setup.links.compute_seconds
        in_time = deadline is None or seconds is None or self._training.since + seconds <= deadline
        if self.phase is Phase.LEAVING or (self.phase is Phase.COMPUTING and in_time):
            self._is_to_leave = True
            return []
        return self._leave()

    def _leave(self) -> list[Action]:
        leaving = Message(self.setup.worker, Leaving(self.iteration + (self.phase is Phase.WAITING)))
        self._training.move(Move.LEAVE)
        self._joining = None
        return [*self._training.queue([Send(peer, leaving) for peer in self.setup.peers]), *self._leave_if_done()]

    def _leave_if_done(self) -> list[Action]:
        """It has left when all data has."""
        if self.phase is not Phase.LEAVING or self._has_left or self.setup.links.waiting:
            return []
        self._has_left = True
        return [Elimination()]
