"""Local steps, then an exchange of parameters in a group, another one each time: the base of such exchanges."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor

from dlion_sim.protocol.choices import ChoiceParameters, Exchange
from dlion_sim.protocol.messages import Mixed
from dlion_sim.protocol.updates import Incoming, LocalGradient, Outgoing, Update


class GroupExchange(Exchange):
    """A worker waits for the present members of its group, at the end of each period; it is alone if there are none."""

    kind: ClassVar[str]
    """As it is registered."""
    needs_everyone = True
    joins_with_state = True
    receives = (Mixed,)

    class Parameters(ChoiceParameters):
        """How long workers take local steps."""

        period: int = Field(10, ge=1, description="Iterations between exchanges.")

    parameters: Parameters

    @classmethod
    def needs_lockstep(cls, parameters: Parameters) -> str:
        """A mean of other parameters than the group's in this exchange would be another one at each worker."""
        return f"exchange: {cls.kind}"

    @abstractmethod
    def group(self, number: int) -> Sequence[int]:
        """The other workers of its group in exchange `number`, from 1 on; the same for all of the group."""

    @abstractmethod
    def next_start(self, mean: Tensor) -> Tensor:
        """The parameters [P] of the next period, given the mean of the group's."""

    def senders(self, tag: int) -> Sequence[int]:
        number, rest = divmod(tag + 1, self.parameters.period)
        return () if rest or not number else self.group(number)

    def arrived(self, update: Update) -> None:
        update.check_whole(self.setup.replica.layout.size)

    def outgoing(self, own: LocalGradient) -> Outgoing:
        self.setup.replica.step(own.gradient)
        number, rest = divmod(own.iteration + 1, self.parameters.period)
        if rest:
            return Outgoing(None, [])
        body = Mixed(own.iteration, own.batch_size)
        update = Update(self.setup.worker, body, (self.setup.replica.snapshot(),))
        return Outgoing(update, [(peer, update) for peer in self.group(number) if peer in self.setup.peers])

    def apply(self, incoming: Incoming) -> int:
        if incoming.own is None:
            return 0
        updates = incoming.updates
        total = sum((update.tensors[0] for update in updates), torch.zeros_like(self.setup.replica.parameters))
        self.setup.replica.write(0, self.next_start(total / len(updates)))
        return len(incoming.received)
