"""Gradients to parameter servers, parameters back: the worker's side."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec
from pydantic import Field

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
from dlion_sim.protocol.registry import register
from dlion_sim.protocol.updates import Incoming, LocalGradient, Outgoing, Update


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


@register("exchange", "parameter_server")
class ParameterServerExchange(Exchange):
    """Each server gets its part of the gradient, and sends back its updated parameters.

    The worker waits for its answers. A synchronous server answers when it has all workers' gradients of the iteration,
    an asynchronous one at once (Li et al., OSDI'14; Dean et al., NeurIPS'12). See `server.ParameterServer`.
    """

    needs_servers = True
    receives = (Pulled,)

    class Parameters(ChoiceParameters):
        """What the servers do with gradients."""

        asynchronous: bool = Field(False, description="Whether a server takes each gradient's step as it comes.")
        summed: bool = Field(
            False, description="Whether gradients count whole, instead of divided by the number of workers."
        )

    parameters: Parameters

    def __init__(self, parameters: Parameters, setup: Setup) -> None:
        super().__init__(parameters, setup)
        stretches = by_bytes(setup.replica.layout.size, len(setup.peers))
        self.stretches = dict(zip(setup.peers, stretches, strict=True))
        """First entry and end of what each server holds."""

    def arrived(self, update: Update) -> None:
        """A server's own part."""
        begin, end = self.stretches[update.sender]
        if update.body.offset != begin:
            raise MalformedMessageError("a contribution of other entries than those of the server")
        update.check_whole(end - begin)

    def lost(self, peer: int) -> str:
        """Only the server has its part."""
        return "a part of the parameters is lost with its server"

    def joined(self, peer: int, iteration: int) -> list[Action]:
        """It still has its part."""
        return []

    def outgoing(self, own: LocalGradient) -> Outgoing:
        """To each server its part; nothing to apply here."""
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

    def apply(self, incoming: Incoming) -> int:
        """Write the parameters that the servers sent."""
        for update in incoming.received:
            self.setup.replica.write(update.body.offset, update.tensors[0])
        return len(incoming.received)
