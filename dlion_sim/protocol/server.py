"""The parameter server: holds a part of the parameters and takes the workers' steps. Sans-I/O, like the worker."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import assert_never

import torch

from dlion_sim.learning.replica import Replica
from dlion_sim.protocol.choices import OnLoss
from dlion_sim.protocol.events import (
    Abort,
    Action,
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
from dlion_sim.protocol.messages import Message


class ParameterServer:
    """Participant number `number`, after the `workers` workers; `replica` holds its part, from entry `offset` on."""

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
        self._factor = 1.0 if parameters.summed else 1.0 / workers
        self._gathered: defaultdict[int, list[Message]] = defaultdict(list)
        """Gradients of iterations for which others are still to come."""

    def handle(self, event: Event, now: float) -> list[Action]:
        """Take in a gradient; answer its sender, or everyone once all gradients of an iteration are here.

        Raises MalformedMessageError, with nothing changed, for a message that no honest worker sends, and
        LocalProtocolError for an event that can only happen to a worker.
        """
        match event:
            case MessageArrived(message):
                return self._take(message)
            case PeerLost():
                return [] if self._asynchronous else [Abort("the server waits for every worker's gradients")]
            case Started() | MessageSent() | MessageTimed() | PeerFound() | Leave():
                return []
            case ProfileReady() | GradientReady() | LinkCapacity():
                raise LocalProtocolError(f"a {type(event).__name__} cannot happen to a server")
            case _:
                assert_never(event)

    def _take(self, message: Message) -> list[Action]:
        push = message.body
        if not isinstance(push, Push):
            raise MalformedMessageError(f"a server takes no message of the kind {push.wire_kind!r}")
        if message.sender >= self._workers:
            raise MalformedMessageError(f"{message.sender} is no worker")
        if push.offset != self._offset or len(message.tensors[0]) != len(self._replica.parameters):
            raise MalformedMessageError("a gradient of other entries than the server holds")
        gathered = self._gathered[push.iteration]
        if any(message.sender == other.sender for other in gathered):
            raise MalformedMessageError(f"a second gradient of iteration {push.iteration}")
        gathered.append(message)
        if not self._asynchronous and len(gathered) < self._workers:
            return []
        del self._gathered[push.iteration]
        self._step(gathered)
        body = Pulled(push.iteration, push.batch_size, offset=self._offset)
        answer = Message(self._number, body, (self._replica.snapshot(),))
        return [Send(message.sender, answer) for message in gathered]

    def _step(self, pushes: Sequence[Message]) -> None:
        """One step with the gradients, summed in the order of their workers."""
        total = torch.zeros_like(self._replica.parameters)
        for push in sorted(pushes, key=lambda push: push.sender):
            total.add_(push.tensors[0], alpha=self._factor)
        self._replica.step(total)
