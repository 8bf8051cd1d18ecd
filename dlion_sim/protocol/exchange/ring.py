"""Ring all-reduce: the mean of all gradients by passing chunks around (Patarasuk and Yuan, 2009)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar

import torch
from pydantic import Field

from dlion_sim.protocol.choices import ChoiceParameters, Exchange, Setup
from dlion_sim.protocol.events import Abort, Action, Send
from dlion_sim.protocol.exchange.partitions import Stretch, by_bytes
from dlion_sim.protocol.exchange.sizes import DENSE_ENTRY_BYTES
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
from dlion_sim.scenario.units import Size


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


class BucketChunk(Chunk, frozen=True, array_like=True):
    """A chunk of a bucket: values [m], from entry `offset` on. Steps go on from bucket to bucket."""

    wire_kind: ClassVar[str] = "bucket_chunk"
    offset: Count

    def fits(self, shapes: Shapes, parameters: int) -> bool:
        return is_one(shapes, "f4", parameters - self.offset)

    def first_entry(self, sender: int, workers: int, parameters: int) -> int:
        return self.offset


class BucketTotal(BucketChunk, frozen=True, array_like=True):
    """A chunk of a bucket that is summed up, and handed round."""

    wire_kind: ClassVar[str] = "bucket_total"
    stage: ClassVar[Stage | None] = "gather"


@register("exchange", "ring_allreduce")
class RingAllReduceExchange(Exchange):
    """Each worker passes chunks to the next: n - 1 steps sum them up, n - 1 more hand the sums round.

    In step s worker k passes on chunk (k - s) mod n. Each worker sends 2 (n - 1) / n gradients an iteration, however
    many there are. With buckets it does all of this for one after another. The exchange is itself the barrier: an
    iteration ends when all sums are here, the same to the bit on all.
    """

    tells_all = False
    receives = (Chunk, Total, BucketChunk, BucketTotal)

    class Parameters(ChoiceParameters):
        """How much is passed around at once."""

        bucket_bytes: Annotated[Size, Field(ge=1)] | None = Field(
            None,
            description="Whole variables, from the last one on, are joined to buckets of at least so many bytes, not "
            "counting `cost_as`, and an entry a worker. A bucket is passed around when the one before is summed up. "
            "1 B: each variable by itself; 25 MB: as PyTorch's DDP, but not while gradients are computed. None: all at "
            "once.",
        )

    parameters: Parameters

    def __init__(self, parameters: Parameters, setup: Setup) -> None:
        super().__init__(parameters, setup)
        self._next = (setup.worker + 1) % setup.workers
        layout = setup.replica.layout
        least = parameters.bucket_bytes
        buckets = [(0, layout.size)] if least is None else [*_buckets(layout.sizes, least, setup.workers)]
        self._stretches = [
            [(begin + first, begin + last) for first, last in by_bytes(end - begin, setup.workers)]
            for begin, end in buckets
        ]
        """Of each bucket, its chunks."""
        self._per_bucket = 2 * (setup.workers - 1)
        self._steps = self._per_bucket * len(buckets)
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
        begin, end = self._stretch(before, step)
        found = message.sender, message.body, len(message.tensors[0])
        if found != (before, self._body(iteration, step, begin), end - begin):
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
        """Add a chunk in, or put a sum in its place, and pass that on, or begin the next bucket; if any is left."""
        assert isinstance(message.body, Chunk)
        step = message.body.step
        if message.body.iteration != self._iteration or self._received == self._steps:
            self._early.append(message)
            return []
        begin, end = self._stretch(message.sender, step)
        if self._is_sum(step):
            self._sum[begin:end] = message.tensors[0]
        else:
            self._sum[begin:end] += message.tensors[0]
        self._received += 1
        return [self._chunk(step + 1)] if step + 1 < self._steps else []

    def _chunk(self, step: int) -> Message:
        begin, end = self._stretch(self.setup.worker, step)
        body = self._body(self._iteration, step, begin)
        return Message(self.setup.worker, body, (self._sum[begin:end].clone(),))

    def _stretch(self, sender: int, step: int) -> Stretch:
        """What a worker sends in a step."""
        bucket, step_of_bucket = divmod(step, self._per_bucket)
        return self._stretches[bucket][(sender - step_of_bucket) % self.setup.workers]

    def _is_sum(self, step: int) -> bool:
        """Whether what is sent in a step is summed up already."""
        return step % self._per_bucket >= self.setup.workers - 1

    def _body(self, iteration: int, step: int, begin: int) -> Chunk:
        if self.parameters.bucket_bytes is None:
            return (Total if self._is_sum(step) else Chunk)(iteration, step)
        return (BucketTotal if self._is_sum(step) else BucketChunk)(iteration, step, begin)


def _buckets(sizes: Sequence[int], least_bytes: float, workers: int) -> Iterator[Stretch]:
    """Stretches of whole variables, from the last one on, each as short as that allows; what is left over is one.

    Each has an entry for each worker: messages without any may overtake others.
    """
    least = max(least_bytes / DENSE_ENTRY_BYTES, workers)
    begin = end = sum(sizes)
    for size in reversed(sizes):
        begin -= size
        if end - begin >= least and not 0 < begin < workers:
            yield begin, end
            end = begin
    if end:
        yield 0, end
