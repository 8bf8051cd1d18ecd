"""The ring all-reduce: the sum of all workers' vectors, by passing chunks around a ring (Patarasuk and Yuan, 2009)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from dlion_sim.protocol.choices import Setup
from dlion_sim.protocol.events import Action, Send
from dlion_sim.protocol.exchange.partitions import Stretch, by_bytes
from dlion_sim.protocol.messages import Body, Channel, Count, MalformedMessageError, Message, Shapes, Stage, is_one
from dlion_sim.protocol.quantization import FLOATS, Float

BROKEN = "the ring is broken, whatever on_loss says"
"""The reason to abort after a loss, to be followed by an alternative."""
CANNOT_JOIN = "no worker can join a ring"


class Chunk(Body, frozen=True, array_like=True):
    """A chunk of a ring all-reduce in its `step` (values [m]); which one, the step and the sender tell."""

    kind: ClassVar[str] = "chunk"
    channel: ClassVar[Channel] = Channel.DATA
    stage: ClassVar[Stage | None] = "reduce"
    iteration: Count
    step: Count

    @classmethod
    def at(cls, iteration: int, step: int, begin: int) -> Chunk:
        """The body for a step, whose values begin with the vector's entry `begin`."""
        return cls(iteration, step)

    def fits(self, shapes: Shapes, parameters: int) -> bool:
        return is_one(shapes, "f4", parameters)

    def first_entry(self, sender: int, workers: int, parameters: int) -> int:
        return by_bytes(parameters, workers)[(sender - self.step) % workers][0]


class RingSum:
    """Sums vectors [P] of all workers, one after another, at one of them; the sums are the same to the bit on all.

    In step s worker k passes on chunk (k - s) mod n, so that each sends 2 (n - 1) / n vectors. Chunks are sent in a
    `precision`, in which partial sums are rounded as they are passed on, and added up in FP32. `bodies` are those of
    chunks that are not summed up yet and of those that are. Of several `buckets` one after another goes round. There is
    a sum in the last one of every `period` iterations.
    """

    def __init__(
        self,
        setup: Setup,
        bodies: tuple[type[Chunk], type[Chunk]],
        buckets: Sequence[Stretch] | None = None,
        precision: Float = "fp32",
        period: int = 1,
    ) -> None:
        self.total = torch.empty(0)
        """The partial sum, and in the end the sum, [P]."""
        self._setup = setup
        self._worker, self._workers = setup.worker, setup.workers
        self._next = (setup.worker + 1) % setup.workers
        self._bodies = bodies
        self._precision: Float = precision
        self._period = period
        self._stretches = [
            [(begin + first, begin + last) for first, last in by_bytes(end - begin, setup.workers)]
            for begin, end in buckets or [(0, setup.replica.layout.size)]
        ]
        """Of each bucket, its chunks."""
        self._per_bucket = 2 * (setup.workers - 1)
        self._steps = self._per_bucket * len(self._stretches)
        self._iteration = -1
        self._received = 0
        self._arrived = 0
        """Received chunks of all sums."""
        self._early: list[Message] = []
        """Chunks that arrived before the own vector."""

    @property
    def is_complete(self) -> bool:
        return self._received == self._steps

    def begin(self, iteration: int, own: Tensor) -> list[tuple[int, Message]]:
        """Begin a sum with the own vector, which is overwritten. Returns (receiver, message) pairs."""
        self.total = own
        self._iteration, self._received = iteration, 0
        messages = [self._chunk(0)] if self._steps else []
        early, self._early = self._early, []
        for message in early:
            messages += self._take(message)
        return [(self._next, message) for message in messages]

    def received(self, message: Message) -> list[Action]:
        """A chunk from the worker before. Raises MalformedMessageError, with nothing changed, for another one."""
        assert isinstance(message.body, Chunk)
        number, step = divmod(self._arrived, self._steps)
        iteration = (number + 1) * self._period - 1
        before = (self._worker - 1) % self._workers
        begin, end = self._stretch(before, step)
        (values,) = message.tensors
        found = message.sender, message.body, len(values), values.dtype
        if found != (before, self._body(iteration, step, begin), end - begin, FLOATS[self._precision][1]):
            raise MalformedMessageError("a chunk that is not the next one of the ring")
        self._arrived += 1
        following = self._take(message)
        return [Send(self._next, each) for each in following if self._next in self._setup.peers]

    def _take(self, message: Message) -> list[Message]:
        """Add a chunk, or store a complete one, and return the next chunk to send, if any."""
        assert isinstance(message.body, Chunk)
        step = message.body.step
        if message.body.iteration != self._iteration or self.is_complete:
            self._early.append(message)
            return []
        begin, end = self._stretch(message.sender, step)
        if self._is_sum(step):
            self.total[begin:end] = message.tensors[0]
        else:
            self.total[begin:end] += message.tensors[0]
        self._received += 1
        return [self._chunk(step + 1)] if step + 1 < self._steps else []

    def _chunk(self, step: int) -> Message:
        begin, end = self._stretch(self._worker, step)
        values = self.total[begin:end].to(FLOATS[self._precision][1], copy=True)
        if self._is_sum(step):
            self.total[begin:end] = values  # The same rounding as at all others.
        return Message(self._worker, self._body(self._iteration, step, begin), (values,))

    def _stretch(self, sender: int, step: int) -> Stretch:
        """The first entry and the end of a worker's chunk in a step."""
        bucket, step_of_bucket = divmod(step, self._per_bucket)
        return self._stretches[bucket][(sender - step_of_bucket) % self._workers]

    def _is_sum(self, step: int) -> bool:
        return step % self._per_bucket >= self._workers - 1

    def _body(self, iteration: int, step: int, begin: int) -> Chunk:
        return self._bodies[self._is_sum(step)].at(iteration, step, begin)
