"""Gradients to parameter servers, parameters back: the worker's side, and what a server does with gradients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Annotated, ClassVar

import msgspec
import torch
from pydantic import Field

from dlion_sim.learning.replica import Replica
from dlion_sim.protocol.choices import ChoiceParameters, Exchange, Setup
from dlion_sim.protocol.events import Action
from dlion_sim.protocol.exchange.partitions import by_bytes
from dlion_sim.protocol.messages import (
    Body,
    Channel,
    Contribution,
    Count,
    MalformedMessageError,
    Message,
    Shapes,
    Stage,
    is_one,
)
from dlion_sim.protocol.registry import SYSTEMS, Composition, register
from dlion_sim.protocol.updates import Incoming, LocalGradient, Outgoing, Update
from dlion_sim.scenario.system import ParameterServers


class Push(Body, frozen=True, array_like=True):
    """A stretch of the sender's gradient (values [m], from entry `offset` on) for the server that holds it."""

    kind: ClassVar[str] = "push"
    channel: ClassVar[Channel] = Channel.DATA
    stage: ClassVar[Stage | None] = "push"
    iteration: Count
    batch_size: Annotated[int, msgspec.Meta(ge=1)]
    offset: Count

    def fits(self, shapes: Shapes, parameters: int) -> bool:
        return is_one(shapes, "f4", parameters - self.offset)

    def first_entry(self, sender: int, workers: int, parameters: int) -> int:
        return self.offset


class Pulled(Contribution, frozen=True, array_like=True):
    """A server's answer: its part of the parameters, from entry `offset` on."""

    wire_kind: ClassVar[str] = "pulled_param"
    stage: ClassVar[Stage | None] = "pull"


class ServerRule(ABC):
    """What a server does with the messages that workers push to it; `replica` holds its part of the parameters."""

    takes: ClassVar[type[Push]] = Push
    """The kind of these messages."""
    needs_all: ClassVar[bool] = True
    """Whether steps, unless it is asynchronous, need a message of every worker."""

    def __init__(self, replica: Replica, *, asynchronous: bool) -> None:
        self.asynchronous = asynchronous
        """Whether it takes a step with each message, rather than with those of all workers."""
        self._replica = replica

    def check(self, message: Message) -> None:
        """Raise MalformedMessageError for tensors of other entries than the server's."""
        if len(message.tensors[0]) != len(self._replica.parameters):
            raise MalformedMessageError("a gradient of other entries than those of the server")

    def awaited(self, iteration: int, members: Mapping[int, int]) -> Iterable[int] | None:
        """The workers whose messages the step of `iteration` waits for; None if there will be no step.

        `members` each with its first iteration.
        """
        return (worker for worker, since in members.items() if since <= iteration)

    def removed(self, worker: int) -> None:
        """A worker is lost or has left: nothing is awaited from it."""
        return

    def returned(self, worker: int) -> None:
        """A worker that had done all its iterations is connected again."""
        return

    @abstractmethod
    def step(self, pushes: Sequence[Message], members: Collection[int]) -> None:
        """One step with these messages, in the order of their senders; `members` are the workers that are there."""

    def answers(self, pushes: Sequence[Message], iteration: int, members: Collection[int]) -> list[tuple[int, Body]]:
        """Who gets the server's parameters, each with the message, before the step of `iteration`.

        By default the senders of the messages of the step before; there are none at the start.
        """
        return [(push.sender, self.answer(push.body)) for push in pushes if isinstance(push.body, Push)]

    def answer(self, push: Push) -> Pulled:
        """The answer to a message, which the server's parameters follow."""
        return Pulled(push.iteration, push.batch_size, offset=push.offset)


class GradientSteps(ServerRule):
    """Steps with the sum or the mean of gradients."""

    def __init__(self, replica: Replica, *, asynchronous: bool, summed: bool) -> None:
        super().__init__(replica, asynchronous=asynchronous)
        self._summed = summed

    def step(self, pushes: Sequence[Message], members: Collection[int]) -> None:
        count = len({push.sender for push in pushes}.union(members)) if self.asynchronous else len(pushes)
        total = torch.zeros_like(self._replica.parameters)
        for push in pushes:
            total.add_(push.tensors[0], alpha=1.0 if self._summed else 1.0 / count)
        self._replica.step(total)


class ServerParameters(ChoiceParameters, ABC):
    """The parameters of an exchange with servers."""

    @abstractmethod
    def rule(self, replica: Replica, workers: int, seed: int) -> ServerRule:
        """What a server, whose part of the parameters `replica` holds, does for so many workers.

        `seed` is the run's, for random streams.
        """


class ServedExchange(Exchange):
    """Each server holds a part of the parameters and answers a message of a worker with it."""

    needs_servers = True

    def __init__(self, parameters: ServerParameters, setup: Setup) -> None:
        super().__init__(parameters, setup)
        stretches = by_bytes(setup.replica.layout.size, len(setup.peers))
        self.stretches = dict(zip(setup.peers, stretches, strict=True))
        """First entry and end of what each server holds."""

    def arrived(self, update: Update) -> None:
        begin, end = self.stretches[update.sender]
        if update.body.offset != begin:
            raise MalformedMessageError("a contribution of other entries than those of the server")
        update.check_whole(end - begin)

    def lost(self, peer: int) -> str:
        """Only the server has its part."""
        return "a part of the parameters is lost with its server"

    def joined(self, peer: int, iteration: int) -> list[Action]:
        return []

    def apply(self, incoming: Incoming) -> int:
        for update in incoming.received:
            self.setup.replica.write(update.body.offset, update.tensors[0])
        return len(incoming.received)


@register("exchange", "parameter_server")
class ParameterServerExchange(ServedExchange):
    """Each server gets its part of the gradient, and sends back its updated parameters.

    The worker waits for its answers. A synchronous server answers when it has all workers' gradients of the iteration,
    an asynchronous one at once (Li et al., OSDI'14; Dean et al., NeurIPS'12). See `server.ParameterServer`.
    """

    receives = (Pulled,)

    class Parameters(ServerParameters):
        """What the servers do with gradients."""

        asynchronous: bool = Field(False, description="Whether a server takes each gradient's step as it comes.")
        summed: bool = Field(
            False, description="Whether gradients count whole, instead of divided by the number of workers."
        )

        def rule(self, replica: Replica, workers: int, seed: int) -> ServerRule:
            return GradientSteps(replica, asynchronous=self.asynchronous, summed=self.summed)

    def outgoing(self, own: LocalGradient) -> Outgoing:
        messages = [
            (
                server,
                Message(
                    self.setup.worker, Push(own.iteration, own.batch_size, begin), (own.gradient[begin:end].clone(),)
                ),
            )
            for server, (begin, end) in self.stretches.items()
        ]
        return Outgoing(None, messages)


SYSTEMS["parameter_server"] = Composition(
    "Li et al., OSDI'14", exchange={"kind": "parameter_server"}, topology=ParameterServers()
)
