"""The parameter server: holds a part of the parameters and applies what workers push. Without I/O, like the worker.

A joining worker learns which step is the first that waits for it. It gets the server's part of the parameters when all
servers have reached the iteration that it chooses to begin with.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import assert_never

from dlion_sim.learning.replica import Replica
from dlion_sim.protocol import state_transfer
from dlion_sim.protocol.choices import OnLoss
from dlion_sim.protocol.events import (
    Abort,
    Action,
    Event,
    GradientReady,
    Leave,
    LeaveCompleted,
    LinkCapacity,
    LocalProtocolError,
    MessageArrived,
    MessageSent,
    MessageTimed,
    PeerFound,
    PeerLost,
    ProfileReady,
    Send,
    Started,
)
from dlion_sim.protocol.exchange.parameter_server import Push, ServerParameters
from dlion_sim.protocol.membership import Handshake
from dlion_sim.protocol.membership_messages import Begins, Hello, Leaving, StateRequest
from dlion_sim.protocol.messages import MalformedMessageError, Message


class ParameterServer:
    """Participant number `number`, after the `workers` workers; `replica` holds its part, from entry `offset` on.

    `seed` is the run's; `absent` workers are absent at the start; `on_loss` says what a synchronous server does about a
    lost worker.
    """

    def __init__(
        self,
        number: int,
        workers: int,
        replica: Replica,
        offset: int,
        parameters: ServerParameters,
        *,
        seed: int = 0,
        absent: frozenset[int] = frozenset(),
        on_loss: OnLoss = "abort",
    ) -> None:
        self.number = number
        self._workers = workers
        self.replica = replica
        self._offset = offset
        self._rule = parameters.rule(replica, workers, seed)
        self._on_loss = on_loss
        self.iteration = 0
        """That of the next step."""
        self._members = {worker: 0 for worker in range(workers) if worker not in absent}
        """Each with the first iteration of which its gradient counts."""
        self._handshakes: dict[int, Handshake] = {}
        """Connected workers whose first iteration is not known."""
        self._departed: set[int] = set()
        """Workers that have left: further messages of theirs are ignored."""
        self._may_request: set[int] = set()
        """Workers that may request the parameters, as they have just joined."""
        self._lost: set[int] = set()
        """Lost workers that are waited for."""
        self._requests: dict[int, int] = {}
        """Workers that have requested the parameters, with the iteration."""
        self._gathered: defaultdict[int, dict[int, Message]] = defaultdict(dict)
        """By iteration and worker, gradients of iterations that are incomplete."""
        self._final_gradients: defaultdict[int, list[Message]] = defaultdict(list)
        """By iteration, gradients of workers that have left since."""

    def handle(self, event: Event, now: float) -> list[Action]:
        """Take in a gradient; answer its sender, or all workers once all gradients of an iteration have arrived.

        Raises MalformedMessageError, with nothing changed, for a message that a correct worker does not send, and
        LocalProtocolError for an event that can only happen to a worker.
        """
        match event:
            case MessageArrived(message):
                return self._take(message)
            case PeerFound(peer):
                return self._on_peer_found(peer)
            case PeerLost(peer):
                return self._on_peer_lost(peer)
            case Leave(deadline):
                return [LeaveCompleted()] if deadline is None else []  # Only it has its part: it stays while it can.
            case Started():
                return self._sends(())
            case MessageSent() | MessageTimed():
                return []
            case ProfileReady() | GradientReady() | LinkCapacity():
                raise LocalProtocolError(f"a {type(event).__name__} cannot happen to a server")
            case _:
                assert_never(event)

    @property
    def _first(self) -> int:
        """The first iteration of a worker that joins now: rounds of some workers are no iterations of all."""
        return self.iteration if self._rule.needs_all else 0

    def _on_peer_found(self, worker: int) -> list[Action]:
        if worker in self._members or worker in self._handshakes:
            raise LocalProtocolError(f"{worker} was found, but had not been lost")
        self._lost.discard(worker)
        self._departed.discard(worker)
        self._handshakes[worker] = Handshake(announced=self._first)
        return [self._send(worker, Hello(self._first, self._first, 0.0, 0, member=True))]

    def _on_peer_lost(self, worker: int) -> list[Action]:
        self._departed.discard(worker)
        was_there = self._remove(worker)
        if not was_there or self._rule.asynchronous:
            return []
        if not self._rule.needs_all:
            return self._step_if_complete()
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
        self._may_request.discard(worker)
        self._rule.removed(worker)
        return (self._members.pop(worker, None), self._handshakes.pop(worker, None)) != (None, None)

    def _take(self, message: Message) -> list[Action]:
        worker = message.sender
        if worker >= self._workers:
            raise MalformedMessageError(f"{worker} is no worker")
        if worker in self._departed:
            return []
        handshake = self._handshakes.get(worker)
        if handshake is None and worker not in self._members:
            raise MalformedMessageError(f"{worker} is not connected")
        match message.body:
            case Push() as push if type(push) is self._rule.takes:
                self._check(push, message)
                self._gathered[push.iteration][worker] = message
                return self._step_if_complete()
            case Hello() as hello:
                if handshake is None or handshake.hello or handshake.announced is None:
                    raise MalformedMessageError(f"another hello of {worker}")
                handshake.hello = hello
                if hello.member:  # It had done all its iterations: otherwise it needs its servers.
                    del self._handshakes[worker]
                    self._members[worker] = max(handshake.announced, hello.first)
                    self._rule.returned(worker)
                    return self._step_if_complete()
                return []
            case Begins(iteration):
                (handshake or Handshake()).check_begins(worker, iteration)
                del self._handshakes[worker]
                self._members[worker] = iteration
                self._may_request.add(worker)
                return self._step_if_complete()
            case StateRequest(iteration):
                if worker not in self._may_request:
                    raise MalformedMessageError(f"{worker} requests parameters, but is not joining")
                self._may_request.remove(worker)
                self._requests[worker] = iteration
                return self._answer()
            case Leaving():
                self._remove(worker)
                self._departed.add(worker)
                for iteration, gathered in self._gathered.items():
                    if worker in gathered:
                        self._final_gradients[iteration].append(gathered.pop(worker))
                return self._step_if_complete()
            case _:
                raise MalformedMessageError(f"a server takes no message of the kind {message.body.wire_kind!r}")

    def _check(self, push: Push, message: Message) -> None:
        if push.offset != self._offset:
            raise MalformedMessageError("a gradient of other entries than those of the server")
        self._rule.check(message)
        if message.sender in self._gathered.get(push.iteration, ()):
            raise MalformedMessageError(f"a second gradient of iteration {push.iteration}")
        if not self._rule.asynchronous and push.iteration < self.iteration:
            raise MalformedMessageError(f"a gradient of iteration {push.iteration}, which is over")

    def _step_if_complete(self) -> list[Action]:
        """Take the steps whose gradients are complete, and answer their senders."""
        actions: list[Action] = []
        while (iteration := self._complete) is not None:
            pushes = list(self._gathered.pop(iteration, {}).values())
            self.iteration = max(self.iteration, iteration + 1)
            if counting := [*pushes, *self._final_gradients.pop(iteration, ())]:
                self._rule.step(sorted(counting, key=lambda push: push.sender), self._members)
            actions += self._sends(pushes)
        return [*actions, *self._answer()]

    @property
    def _complete(self) -> int | None:
        if self._rule.asynchronous:
            return min(self._gathered, default=None)
        here = self._gathered[self.iteration]
        awaited = self._rule.awaited(self.iteration, self._members)
        missing = awaited is None or any(worker not in here for worker in awaited)
        joining = self._rule.needs_all and self._handshakes
        return None if missing or joining or self._lost or not self._members else self.iteration

    def _sends(self, pushes: Sequence[Message]) -> list[Action]:
        """Send the parameters to those who get them after a step with these messages."""
        answers = self._rule.answers(pushes, self.iteration, self._members)
        return [Send(to, Message(self.number, body, (self.replica.snapshot(),))) for to, body in answers]

    def _answer(self) -> list[Action]:
        """Send its part to joining workers whose requests it answers."""
        now = {w: least for w, least in self._requests.items() if self._rule.asynchronous or least <= self.iteration}
        actions: list[Action] = []
        for worker, least in now.items():
            del self._requests[worker]
            messages = state_transfer.messages(self.number, max(self._first, least), [self.replica.snapshot()])
            actions += [Send(worker, message) for message in messages]
        return actions

    def _send(self, worker: int, body: Hello) -> Send:
        return Send(worker, Message(self.number, body))
