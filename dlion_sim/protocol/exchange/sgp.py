"""Stochastic gradient push: parameters averaged over directed links (Assran et al., ICML'19, arXiv:1811.10792)."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec
from torch import Tensor

from dlion_sim.errors import InputError
from dlion_sim.protocol.choices import Exchange, Setup
from dlion_sim.protocol.messages import Contribution, Shapes, Stage, is_whole
from dlion_sim.protocol.registry import SYSTEMS, Composition, register
from dlion_sim.protocol.updates import Incoming, LocalGradient, Outgoing, Update
from dlion_sim.scenario.system import Exponential


class Pushed(Contribution, frozen=True, array_like=True):
    """A share of the sender's numerator (values [P]), with the same share of its weight. None may be missing."""

    wire_kind: ClassVar[str] = "push_sum"
    stage: ClassVar[Stage | None] = None
    share: Annotated[float, msgspec.Meta(gt=0, le=1e6)] = 1.0

    def fits(self, shapes: Shapes, parameters: int) -> bool:
        return is_whole(shapes, parameters)


@register("exchange", "sgp")
class PushSumExchange(Exchange):
    """x <- x - rate * g(z) with z = x / w; half of x and of its weight w goes to one worker; what comes is added.

    In iteration k it goes to the worker 2^(k mod ceil(log2 n)) places further. The sums of x and w over all workers and
    messages under way are conserved, so z tends to the mean however messages are delayed: with a synchronization of
    bounded staleness it is overlap SGP. If the receiver is not there, all stays; what is lost with a worker is lost of
    x and w alike. Weight decay is of z, not of x; both are the same while w is 1.
    """

    joins_with_state = True
    receives = (Pushed,)

    def __init__(self, parameters: Exchange.Parameters, setup: Setup) -> None:
        super().__init__(parameters, setup)
        self._weight = 1.0
        self._kept: Tensor = setup.replica.snapshot()
        """The numerator [P] without what was sent, from the own step to the end of the iteration."""
        self._distances = [1 << exponent for exponent in range((setup.workers - 1).bit_length())]
        reached = {(setup.worker + way * each) % setup.workers for each in self._distances for way in (1, -1)}
        if not reached - {setup.worker} <= setup.mixing.keys():
            raise InputError(
                "it sends to workers at distance 1, 2, 4, ...", allowed="topology: exponential or all_to_all"
            )

    def senders(self, tag: int) -> tuple[int, ...]:
        return (self._partner(tag, -1),) if tag >= 0 and self._distances else ()

    def outgoing(self, own: LocalGradient) -> Outgoing:
        replica = self.setup.replica
        before = replica.snapshot()
        replica.step(own.gradient)
        self._kept = (before * self._weight).add_(replica.parameters - before)
        receiver = self._partner(own.iteration, 1) if self._distances else None
        if receiver is None or receiver not in self.setup.peers:
            return Outgoing(None, [])
        self._kept, self._weight = self._kept.div_(2), self._weight / 2
        body = Pushed(own.iteration, own.batch_size, share=self._weight)
        return Outgoing(None, [(receiver, Update(self.setup.worker, body, (self._kept,)))])

    def apply(self, incoming: Incoming) -> int:
        for update in incoming.received:
            assert isinstance(update.body, Pushed)
            self._kept = self._kept + update.tensors[0]
            self._weight += update.body.share
        self.setup.replica.write(0, self._kept / self._weight)
        return len(incoming.received)

    def _partner(self, iteration: int, direction: int) -> int:
        distance = self._distances[iteration % len(self._distances)]
        return (self.setup.worker + direction * distance) % self.setup.workers


SYSTEMS["sgp"] = Composition("Assran et al., ICML'19", exchange={"kind": "sgp"}, topology=Exponential())
