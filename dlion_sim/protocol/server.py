"""The parameter server: holds a part of the parameters and takes the workers' steps. Sans-I/O, like the worker.

A worker that comes is told of the next step as the first one that waits for it; it gets the server's part when all its
servers are at the iteration that it then chooses to begin with.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import assert_never

import torch

from dlion_sim.learning.replica import Replica
from dlion_sim.protocol import state_transfer
from dlion_sim.protocol.choices import OnLoss
from dlion_sim.protocol.events import (
    Abort,
    Action,
    Elimination,
    Event,
    GradientReady,
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
)
from dlion_sim.protocol.exchange.parameter_server import ParameterServerExchange, Pulled, Push
from dlion_sim.protocol.faults import LocalProtocolError, MalformedMessageError
from dlion_sim.protocol.membership import Meeting
from dlion_sim.protocol.membership_messages import Begins, Hello, Leaving, StateRequest
from dlion_sim.protocol.messages import Message


class ParameterServer:
    """Participant number `number`, after the `workers` workers; `replica` holds its part, from entry `offset` on.

    `absent` workers are not there at the start; `on_loss` says what a synchronous server does without others.
    """

    def __init__(
        self,
        number: int,
        workers: int,
        replica: Replica,
        offset: int,
        parameters: ParameterServerExchange.Parameters,
        *,
        absent: frozenset[int] = frozenset(),
        on_loss: OnLoss = "abort",
    ) -> None:
        self._number = number
        self._workers = workers
        self._replica = replica
        self._offset = offset
        self._asynchronous = parameters.asynchronous
        self._summed = parameters.summed
        self._on_loss = on_loss
        self._next = 0
        """The iteration after the newest one of which a step was taken."""
        self._members = {worker: 0 for worker in range(workers) if worker not in absent}
        """With the first iteration of which each one's gradient counts."""
        self._newcomers: dict[int, Meeting] = {}
        """Who has not said when it begins."""
        self._departed: set[int] = set()
        """Who has taken leave: what else it had sent means nothing any more."""
        self._may_ask: set[int] = set()
        """Who has just begun, and has not asked for the parameters."""
        self._lost: set[int] = set()
        """Who is waited for."""
        self._requests: dict[int, int] = {}
        """Who has asked for the parameters, and those of which iteration."""
        self._gathered: defaultdict[int, dict[int, Message]] = defaultdict(dict)
        """Gradients of iterations for which others are still to come, by their workers."""
        self._last_words: defaultdict[int, list[Message]] = defaultdict(list)
        """Such gradients of those who have taken leave since."""

    def handle(self, event: Event, now: float) -> list[Action]:
        """Take in a gradient; answer its sender, or everyone once all gradients of an iteration are here.

        Raises MalformedMessageError, with nothing changed, for a message that no honest worker sends, and
        LocalProtocolError for an event that can only happen to a worker.
        """
        match event:
            case MessageArrived(message):
                return self._take(message)
            case PeerFound(peer):
                return self._find(peer)
            case PeerLost(peer):
                return self._lose(peer)
            case Leave(deadline):
                return [Elimination()] if deadline is None else []  # Nobody else has its part: it stays while it can.
            case Started() | MessageSent() | MessageTimed():
                return []
            case ProfileReady() | GradientReady() | LinkCapacity():
                raise LocalProtocolError(f"a {type(event).__name__} cannot happen to a server")
            case _:
                assert_never(event)

    def _find(self, worker: int) -> list[Action]:
        if worker in self._members or worker in self._newcomers:
            raise LocalProtocolError(f"{worker} was found, and had not been lost")
        self._lost.discard(worker)
        self._departed.discard(worker)
        self._newcomers[worker] = Meeting(told=self._next)
        return [self._say(worker, Hello(self._next, self._next, 0.0, 0, member=True))]

    def _lose(self, worker: int) -> list[Action]:
        self._departed.discard(worker)
        was_there = self._remove(worker)
        if not was_there or self._asynchronous:
            return []
        for gathered in self._gathered.values():
            gathered.pop(worker, None)
        if self._on_loss == "abort":
            return [Abort("the server waits for every worker's gradients")]
        if self._on_loss == "wait":
            self._lost.add(worker)
        return self._step_if_complete()

    def _remove(self, worker: int) -> bool:
        """Wait for a worker no more; returns whether it was there."""
        self._requests.pop(worker, None)
        self._may_ask.discard(worker)
        return (self._members.pop(worker, None), self._newcomers.pop(worker, None)) != (None, None)

    def _take(self, message: Message) -> list[Action]:
        worker = message.sender
        if worker >= self._workers:
            raise MalformedMessageError(f"{worker} is no worker")
        if worker in self._departed:
            return []
        meeting = self._newcomers.get(worker)
        if meeting is None and worker not in self._members:
            raise MalformedMessageError(f"{worker} is not connected")
        match message.body:
            case Push() as push:
                self._check(push, message)
                self._gathered[push.iteration][worker] = message
                return self._step_if_complete()
            case Hello() as hello:
                if meeting is None or meeting.heard or meeting.told is None:
                    raise MalformedMessageError(f"another hello of {worker}")
                meeting.heard = hello
                if hello.member:  # It had ended when they lost each other, or it could not have gone on.
                    del self._newcomers[worker]
                    self._members[worker] = max(meeting.told, hello.first)
                return []
            case Begins(iteration):
                if meeting is None or not meeting.heard or meeting.told is None or iteration < meeting.told:
                    raise MalformedMessageError(f"{worker} begins with {iteration}, where it cannot")
                del self._newcomers[worker]
                self._members[worker] = iteration
                self._may_ask.add(worker)
                return self._step_if_complete()
            case StateRequest(iteration):
                if worker not in self._may_ask:
                    raise MalformedMessageError(f"{worker} asks for parameters that are not for it")
                self._may_ask.remove(worker)
                self._requests[worker] = iteration
                return self._answer()
            case Leaving():
                self._remove(worker)
                self._departed.add(worker)
                for iteration, gathered in self._gathered.items():
                    if worker in gathered:
                        self._last_words[iteration].append(gathered.pop(worker))
                return self._step_if_complete()
            case _:
                raise MalformedMessageError(f"a server takes no message of the kind {message.body.wire_kind!r}")

    def _check(self, push: Push, message: Message) -> None:
        if push.offset != self._offset or len(message.tensors[0]) != len(self._replica.parameters):
            raise MalformedMessageError("a gradient of other entries than the server holds")
        if message.sender in self._gathered.get(push.iteration, ()):
            raise MalformedMessageError(f"a second gradient of iteration {push.iteration}")
        if not self._asynchronous and push.iteration < self._next:
            raise MalformedMessageError(f"a gradient of iteration {push.iteration}, which is over")

    def _step_if_complete(self) -> list[Action]:
        """Take the steps for which all gradients are here, and answer those who sent them."""
        actions: list[Action] = []
        while (iteration := self._complete) is not None:
            pushes = list(self._gathered.pop(iteration, {}).values())
            self._next = max(self._next, iteration + 1)
            self._step([*pushes, *self._last_words.pop(iteration, ())])
            actions += map(self._pulled, pushes)
        return [*actions, *self._answer()]

    @property
    def _complete(self) -> int | None:
        """The iteration of which all gradients are here, if that is known; there may be none, if all begin later."""
        if self._asynchronous:
            return min(self._gathered, default=None)
        here = self._gathered[self._next]
        missing = any(since <= self._next and worker not in here for worker, since in self._members.items())
        return None if missing or self._newcomers or self._lost or not self._members else self._next

    def _step(self, pushes: Sequence[Message]) -> None:
        """One step with the gradients, if there are any, summed in the order of their workers."""
        senders = {push.sender for push in pushes}
        count = len(senders.union(self._members)) if self._asynchronous else len(pushes)
        total = torch.zeros_like(self._replica.parameters)
        for push in sorted(pushes, key=lambda push: push.sender):
            total.add_(push.tensors[0], alpha=1.0 if self._summed else 1.0 / count)
        if pushes:
            self._replica.step(total)

    def _pulled(self, message: Message) -> Send:
        """The answer to a gradient."""
        push = message.body
        assert isinstance(push, Push)
        body = Pulled(push.iteration, push.batch_size, offset=self._offset)
        return Send(message.sender, Message(self._number, body, (self._replica.snapshot(),)))

    def _answer(self) -> list[Action]:
        """Hand its part on to newcomers who can begin with it."""
        now = {w: least for w, least in self._requests.items() if self._asynchronous or least <= self._next}
        actions: list[Action] = []
        for worker, least in now.items():
            del self._requests[worker]
            messages = state_transfer.messages(self._number, max(self._next, least), [self._replica.snapshot()])
            actions += [Send(worker, message) for message in messages]
        return actions

    def _say(self, worker: int, body: Hello) -> Send:
        return Send(worker, Message(self._number, body))
