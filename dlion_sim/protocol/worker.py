"""The worker as a state machine without I/O: `handle(event, now)` returns the actions that follow from an event.

A driver with a real or virtual clock stands around it. Its iterations are in `training`; changes of membership are in
`membership` and `joining`.
"""

from __future__ import annotations

from typing import assert_never

from dlion_sim.protocol.barrier import Barrier
from dlion_sim.protocol.choices import Choices, OnLoss, Setup
from dlion_sim.protocol.events import (
    Abort,
    Action,
    Event,
    GradientReady,
    Joined,
    Leave,
    LeaveCompleted,
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
from dlion_sim.protocol.joining import Joining
from dlion_sim.protocol.membership import Membership
from dlion_sim.protocol.membership_messages import MEMBERSHIP, Begins, Hello, Leaving, NotBefore, State, StateRequest
from dlion_sim.protocol.messages import MalformedMessageError, Message
from dlion_sim.protocol.phases import Move, Phase
from dlion_sim.protocol.training import Training


class Worker:
    """A worker's complete state. `replica` holds the parameters."""

    def __init__(self, setup: Setup, choices: Choices) -> None:
        self.setup = setup
        self.choices = choices
        self.replica = setup.replica
        self._members = Membership(setup, choices)
        self._barrier = Barrier(setup, choices, self._members)
        self._training = Training(setup, choices, self._members, self._barrier)
        self._joining: Joining | None = None
        """While it joins."""
        self._is_to_leave = False
        """Once the gradient that is being computed has been sent."""
        self._has_left = False

    @property
    def phase(self) -> Phase:
        return self._training.phase

    @property
    def iteration(self) -> int:
        return self._training.iteration

    def unfinished(self, now: float) -> Unfinished | None:
        """The unfinished iteration at time `now` (seconds); None before the first and once it has stopped.

        While it leaves: the gradient that it gave up, if there was one.
        """
        return self._training.unfinished(now)

    def handle(self, event: Event, now: float) -> list[Action]:
        """The actions that follow from an event at time `now` (seconds), in order.

        Raises MalformedMessageError, with nothing changed, for a message that a correct peer does not send, and
        LocalProtocolError for an event that cannot happen in the present phase.
        """
        links, training = self.setup.links, self._training
        training.now = now
        match event:
            case Started() | ProfileReady() | GradientReady():
                return self._handle_own(event)
            case MessageArrived():
                return [*self._receive(event.message), *training.end_iteration_if_allowed(event)]
            case MessageSent():
                if links.is_connected(event.peer):
                    links.sent(event.peer, now)
                return [*training.end_iteration_if_allowed(event), *self._leave_if_done()]
            case MessageTimed():
                if links.is_connected(event.peer):
                    links.timed(event.peer, event.size, event.seconds)
                return []
            case PeerLost():
                return [
                    *self._on_peer_lost(event.peer),
                    *training.end_iteration_if_allowed(event),
                    *self._leave_if_done(),
                ]
            case PeerFound():
                return self._on_peer_found(event.peer)
            case Leave():
                return self._prepare_to_leave(event.deadline)
            case LinkCapacity():
                links.capacity_reported(event.peer, event.alone, event.shared)
                return []
            case _:
                assert_never(event)

    def _handle_own(self, event: Started | ProfileReady | GradientReady) -> list[Action]:
        """An event of the worker's own machine, which leads to another phase."""
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
                return [*sends, *(self._leave() if self._is_to_leave else training.end_iteration_if_allowed(event))]
            case _:
                assert_never(event)

    def _start(self, joining: bool) -> list[Action]:
        """Begin the first iteration, or joining. Absent and not yet connected neighbours are lost in advance."""
        for peer in self.setup.peers:
            if joining or peer in self.setup.absent:
                self._members.remove(peer)
                reason = self._reason_to_abort(peer, "go_on", left=True)
                if reason and peer in self.setup.absent:
                    return self._training.abort(reason)
        if not joining:
            return self._training.begin()
        self._training.move(Move.JOIN)
        self._joining = Joining(self.setup, self.choices, self._members, self._training.now)
        return self._continue_joining()

    def _receive(self, message: Message) -> list[Action]:
        sender = message.sender
        if self.phase is Phase.LEAVING or sender in self._members.departed:
            return []
        if not self.setup.links.is_connected(sender):
            raise MalformedMessageError(f"{sender} is no peer of {self.setup.worker}")
        return (
            self._on_membership_message(message)
            if type(message.body) in MEMBERSHIP
            else self._training.received(message)
        )

    @property
    def _hello(self) -> Hello:
        if self._joining:
            return Hello(0, 0, 0.0, 0, member=False)
        return self._training.hello

    def _on_peer_found(self, peer: int) -> list[Action]:
        if self.phase is Phase.LEAVING:
            return [Send(peer, Message(self.setup.worker, Leaving(self.iteration)))]
        is_awaited = peer in self._members.peers
        self._members.found(peer)
        if is_awaited:
            self.choices.synchronization.lost(peer)  # Its new process has no state of the one that was waited for.
        self._barrier.changed()
        if self._joining:
            self._joining.found(peer)
        return [self._members.send_hello(peer, self._hello)]

    def _on_peer_lost(self, peer: int) -> list[Action]:
        """Continue without a lost peer, wait for it, or abort, as `on_loss` says."""
        if self._members.lost(peer):
            self._training.take_updates_of(peer)
            return self._continue_without(peer, self.setup.on_loss)
        if self._joining:
            self._joining.lost(peer)
        return self._continue_joining()

    def _continue_without(self, peer: int, on_loss: OnLoss, *, left: bool = False) -> list[Action]:
        self._barrier.changed()
        if self._joining:
            self._joining.lost(peer)
        reason = self._reason_to_abort(peer, on_loss, left=left)
        if reason:
            return self._training.abort(reason)
        return [*self._training.queue(self.choices.exchange.settled()), *self._continue_joining()]

    def _reason_to_abort(self, peer: int, on_loss: OnLoss, *, left: bool) -> str | None:
        """Tell the choices that a peer is lost or has left, except synchronization if it waits for the peer.

        Returns the reason if the worker cannot continue.
        """
        synchronization = self.choices.synchronization
        others = [choice for choice in self.choices.all if choice is not synchronization]
        reasons = [choice.left(peer) if left else choice.lost(peer) for choice in others]
        if on_loss != "wait":
            reason = synchronization.lost(peer)
            reasons += [reason] if on_loss == "abort" else []
        return next(filter(None, reasons), None)

    def _on_membership_message(self, message: Message) -> list[Action]:
        sender = message.sender
        match message.body:
            case Hello() as hello:
                is_settled = self._members.receive_hello(sender, hello)
                if not self._joining:
                    return self._on_peer_joined(sender, hello.first) if is_settled else []
                if hello.member:
                    self._joining.receive_hello(sender, hello, self._on_peer_joined(sender, hello.first))
                return self._continue_joining()
            case Begins(iteration):
                self._members.receive_begins(sender, iteration)
                return self._on_peer_joined(sender, iteration)
            case NotBefore(iteration):
                self._members.receive_not_before(sender, iteration)
                return []
            case StateRequest(iteration):
                self._members.receive_state_request(sender, iteration)
                return self._training.send_state()
            case State():
                if not self._joining:
                    raise MalformedMessageError("a state that was not requested")
                self._joining.take(message)
                return self._continue_joining()
            case Leaving(iteration):
                self._members.left(sender, self._training.take_updates_of(sender))
                if self._joining:
                    self._joining.left(sender, iteration)
                return self._continue_without(sender, "go_on", left=True)
            case _:
                raise TypeError(f"a {message.body.kind} is no message of membership")

    def _on_peer_joined(self, peer: int, iteration: int) -> list[Action]:
        actions = [action for choice in self.choices.all for action in choice.joined(peer, iteration)]
        reasons = [action.reason for action in actions if isinstance(action, Abort)]
        return self._training.abort(reasons[0]) if reasons else self._training.queue(actions)

    def _continue_joining(self) -> list[Action]:
        if self._joining is None or self.phase is not Phase.JOINING:
            return []
        asked = self._joining.proceed()
        outcome = self._joining.outcome
        return [*asked, *self._become_member(self._joining, *outcome)] if outcome else asked

    def _become_member(self, joining: Joining, iteration: int, sponsor: int | None) -> list[Action]:
        training = self._training
        self._joining, training.iteration = None, iteration
        announcements = joining.begin(iteration)
        hellos = [self._members.send_hello(peer, self._hello) for peer in self._members.unsettled]
        training.drop_obsolete()
        self._members.begin(iteration)
        self._barrier.changed()
        return [Joined(iteration, sponsor, training.now - joining.began), *announcements, *hellos, *training.begin()]

    def _prepare_to_leave(self, deadline: float | None) -> list[Action]:
        """Leave once the gradient that is being computed has been sent, if it is expected before the deadline."""
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
        """Leaving is complete when all data has been sent."""
        if self.phase is not Phase.LEAVING or self._has_left or self.setup.links.waiting:
            return []
        self._has_left = True
        return [LeaveCompleted()]
