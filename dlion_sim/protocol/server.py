"""The parameter server: holds a part of the parameters and takes the workers' steps. Sans-I/O, like the worker."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import torch

from dlion_sim.learning.replica import Replica
from dlion_sim.protocol.events import Abort, Action, Event, MessageArrived, PeerLost, Send
from dlion_sim.protocol.exchange.parameter_server import ParameterServerExchange
from dlion_sim.protocol.messages import Contribution, MalformedMessageError, Message, Push


class ParameterServer:
    """Participant number `number`, after the `workers` workers; `replica` holds its part, from entry `offset` on."""

    def __init__(
        self, number: int, workers: int, replica: Replica, offset: int, parameters: ParameterServerExchange.Parameters
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

        Raises MalformedMessageError, with nothing changed, for a gradient that no honest worker sends.
        """
        match event:
            case MessageArrived(Message(body=Push() as push) as message):
                return self._take(push, message)
            case PeerLost() if not self._asynchronous:
                return [Abort("the server waits for every worker's gradients")]
            case _:
                return []

    def _take(self, push: Push, message: Message) -> list[Action]:
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
        body = Contribution(push.iteration, push.batch_size, offset=self._offset)
        answer = Message(self._number, body, (self._replica.snapshot(),))
        return [Send(message.sender, answer) for message in gathered]

    def _step(self, pushes: Sequence[Message]) -> None:
        """One step with the gradients, summed in the order of their workers."""
        total = torch.zeros_like(self._replica.parameters)
        for push in sorted(pushes, key=lambda push: push.sender):
            total.add_(push.tensors[0], alpha=self._factor)
        self._replica.step(total)
