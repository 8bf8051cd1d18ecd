"""Ring all-reduce: the mean of all gradients by passing chunks around (Patarasuk and Yuan, 2009)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar

from pydantic import Field

from dlion_sim.protocol.choices import ChoiceParameters, Exchange, Setup
from dlion_sim.protocol.events import Abort, Action
from dlion_sim.protocol.exchange.partitions import Stretch
from dlion_sim.protocol.exchange.ring_sum import BROKEN, CANNOT_JOIN, Chunk, RingSum
from dlion_sim.protocol.messages import Count, Message, Shapes, Stage, is_one
from dlion_sim.protocol.registry import SYSTEMS, Composition, register
from dlion_sim.protocol.updates import DENSE_ENTRY_BYTES, Incoming, LocalGradient, Outgoing
from dlion_sim.scenario.units import Size


class Total(Chunk, frozen=True, array_like=True):
    """A complete chunk, which is passed around."""

    wire_kind: ClassVar[str] = "total"
    stage: ClassVar[Stage | None] = "gather"


class BucketChunk(Chunk, frozen=True, array_like=True):
    """A chunk of a bucket: values [m], from entry `offset` on. Steps are counted over all buckets."""

    wire_kind: ClassVar[str] = "bucket_chunk"
    offset: Count

    @classmethod
    def at(cls, iteration: int, step: int, begin: int) -> BucketChunk:
        return cls(iteration, step, begin)

    def fits(self, shapes: Shapes, parameters: int) -> bool:
        return is_one(shapes, "f4", parameters - self.offset)

    def first_entry(self, sender: int, workers: int, parameters: int) -> int:
        return self.offset


class BucketTotal(BucketChunk, frozen=True, array_like=True):
    """A complete chunk of a bucket, which is passed around."""

    wire_kind: ClassVar[str] = "bucket_total"
    stage: ClassVar[Stage | None] = "gather"


_INSTEAD = "system: baseline computes the same mean without one, and can continue"


@register("exchange", "ring_allreduce")
class RingAllReduceExchange(Exchange):
    """Each worker passes chunks to the next: n - 1 steps add them up, n - 1 more distribute the sums.

    Each worker sends 2 (n - 1) / n gradients an iteration, however many workers there are: see `RingSum`. Buckets are
    processed one after another. The exchange is itself the barrier: an iteration ends when all sums are complete.
    """

    sends_every_iteration = False
    receives = (Chunk, Total, BucketChunk, BucketTotal)

    class Parameters(ChoiceParameters):
        """How much is passed around at once."""

        bucket_bytes: Annotated[Size, Field(ge=1)] | None = Field(
            None,
            description="Least size of a bucket of whole variables, from the last one on, without `cost_as`; each "
            "starts when the one before is summed up (25 MB: as PyTorch's DDP). By default all at once.",
        )

    parameters: Parameters

    def __init__(self, parameters: Parameters, setup: Setup) -> None:
        super().__init__(parameters, setup)
        layout = setup.replica.layout
        least = parameters.bucket_bytes
        buckets = None if least is None else [*_buckets(layout.sizes, least, setup.workers)]
        self._ring = RingSum(setup, (Chunk, Total) if buckets is None else (BucketChunk, BucketTotal), buckets)

    def ready(self, iteration: int) -> bool:
        return self._ring.is_complete

    def outgoing(self, own: LocalGradient) -> Outgoing:
        """The first chunk, and those that follow from chunks that have arrived already."""
        return Outgoing(None, self._ring.begin(own.iteration, own.gradient * own.factor))

    def received(self, message: Message) -> list[Action]:
        return self._ring.received(message)

    def lost(self, peer: int) -> str:
        return f"{BROKEN}; {_INSTEAD}"

    def joined(self, peer: int, iteration: int) -> list[Action]:
        return [Abort(f"{CANNOT_JOIN}; {_INSTEAD}")]

    def apply(self, incoming: Incoming) -> int:
        self.setup.replica.step(self._ring.total)
        return self.setup.workers - 1


def _buckets(sizes: Sequence[int], least_bytes: float, workers: int) -> Iterator[Stretch]:
    """Stretches of whole variables, from the last one on, each as short as that allows; the rest is one.

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


SYSTEMS["ring_allreduce"] = Composition(  # The exchange is its own barrier.
    "Patarasuk & Yuan, 2009", exchange={"kind": "ring_allreduce"}, synchronization={"kind": "asynchronous"}
)
