"""Ring all-reduce: the mean of all gradients by passing chunks around (Patarasuk and Yuan, 2009)."""

from __future__ import annotations

from typing import ClassVar

import torch

from dlion_sim.protocol.choices import Exchange, Setup
from dlion_sim.protocol.events import Abort, Action, Send
from dlion_sim.protocol.exchange.partitions import by_bytes
from dlion_sim.protocol.faults import MalformedMessageError
from dlion_sim.protocol.messages import (
    Body,
    Channel,
    Count,
    Message,
    Shapes,
    Stage,
    is_one,
)
from dlion_sim.protocol.registry import register
from dlion_sim.protocol.updates import Incoming, LocalGradient, Outgoing


class Chunk(Body, frozen=True, array_like=True):
    """A chunk of a ring all-reduce in its `step` (values [m]); which one, the step and the sender tell."""

    kind: ClassVar[str] = "chunk"
    channel: ClassVar[Channel] = Channel.DATA
    stage: ClassVar[Stage | None] = "reduce"
    iteration: Count
    step: Count

    def fits(self, shapes: Shapes, parameters: int) -> bool:
        return is_one(shapes, "f4", parameters)

    def first_entry(self, sender: int, workers: int, parameters: int) -> int:
        return by_bytes(parameters, workers)[(sender - self.step) % workers][0]


class Total(Chunk, frozen=True, array_like=True):
    """A chunk that is summed up, and handed round."""

    wire_kind: ClassVar[str] = "total"
    stage: ClassVar[Stage | None] = "gather"


@register("exchange", "ring_allreduce")
class RingAllReduceExchange(Exchange):
    """Each worker passes chunks to the next: n - 1 steps sum them up, n - 1 more hand the sums round.

    In step s worker k passes on chunk (k - s) mod n. Each worker sends 2 (n - 1) / n gradients an iteration, however
    many there are. The exchange is itself the barrier: an iteration ends when all sums are here, the same to the bit on
    all.
    """

    tells_all = False
    receives = (Chunk, Total)

    def __init__(self, parameters: Exchange.Parameters, setup: Setup) -> None:
        super().__init__(parameters, setup)
        self._next = (setup.worker + 1) % setup.workers
        self._stretches = by_bytes(setup.replica.layout.size, setup.workers)
        self._steps = 2 * (setup.workers - 1)
        self._sum = torch.empty(0)
        self._iteration = -1
        self._received = 0
        self._arrived = 0
        """Chunks so far, of all iterations."""
        self._early: list[Message] = []
        """Chunks that came before the own gradient was there."""

    def ready(self, iteration: int) -> bool:
        """All sums are here."""
        return self._received == self._steps

    def outgoing(self, own: LocalGradient) -> Outgoing:
        """The first chunk, and what follows from those that are here already."""
        self._sum = own.gradient * own.factor
        self._iteration, self._received = own.iteration, 0
        messages = [(self._next, self._chunk(0))] if self._steps else []
        early, self._early = self._early, []
        for message in early:
            messages += [(self._next, following) for following in self._take(message)]
        return Outgoing(None, messages)

    def received(self, message: Message) -> list[Action]:
        """A chunk from the worker before."""
        assert isinstance(message.body, Chunk)
        iteration, step = divmod(self._arrived, self._steps)
        before = (self.setup.worker - 1) % self.setup.workers
        begin, end = self._stretches[(before - step) % self.setup.workers]
        body = message.body
        found = message.sender, type(body), body.iteration, body.step, len(message.tensors[0])
        if found != (before, self._kind(step), iteration, step, end - begin):
            raise MalformedMessageError("a chunk that is not the next one of the ring")
        self._arrived += 1
        return [Send(self._next, following) for following in self._take(message)]

    def lost(self, peer: int) -> str:
        """Every worker is part of it."""
        return "the ring is broken"

    def joined(self, peer: int, iteration: int) -> list[Action]:
        """It would have to be in the middle of every sum."""
        return [Abort("a ring takes nobody in")]

    def apply(self, incoming: Incoming) -> int:
        self.setup.replica.step(self._sum)
        return self.setup.workers - 1

    def _take(self, message: Message) -> list[Message]:
        """Add a chunk in, or put a sum in its place, and pass that on; unless this was the last step."""
        assert isinstance(message.body, Chunk)
        step = message.body.step
        if message.body.iteration != self._iteration or self._received == self._steps:
            self._early.append(message)
            return []
        begin, end = self._stretches[(message.sender - step) % self.setup.workers]
        if step < self.setup.workers - 1:
            self._sum[begin:end] += message.tensors[0]
        else:
            self._sum[begin:end] = message.tensors[0]
        self._received += 1
        return [self._chunk(step + 1)] if step + 1 < self._steps else []

    def _chunk(self, step: int) -> Message:
        begin, end = self._stretches[(self.setup.worker - step) % self.setup.workers]
        body = self._kind(step)(self._iteration, step)
        return Message(self.setup.worker, body, (self._sum[begin:end].clone(),))

    def _kind(self, step: int) -> type[Chunk]:
        """Which messages a step has."""
        return Chunk if step < self.setup.workers - 1 else Total
