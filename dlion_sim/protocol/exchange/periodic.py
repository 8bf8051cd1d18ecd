"""Many local steps between exchanges: local SGD and DiLoCo."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from pydantic import Field

from dlion_sim.protocol.choices import ChoiceParameters, Exchange, Setup
from dlion_sim.protocol.events import Action
from dlion_sim.protocol.messages import Mixed
from dlion_sim.protocol.registry import register
from dlion_sim.protocol.updates import Incoming, LocalGradient, Outgoing, Update


@register("exchange", "local_sgd")
class LocalSgdExchange(Exchange):
    """Every worker steps by its own gradients, and every `period` iterations all take the mean of their parameters.

    Stich, ICLR'19; with a sample of the workers it is federated averaging (McMahan et al., AISTATS'17). Where it is not
    waited for all, parameters that come after their exchange count in the next one, unless newer ones are here by then.
    """

    class Parameters(ChoiceParameters):
        """How long workers are on their own."""

        period: int = Field(10, ge=1, description="Iterations between exchanges.")

    parameters: Parameters
    receives = (Mixed,)

    def __init__(self, parameters: Parameters, setup: Setup) -> None:
        super().__init__(parameters, setup)
        self._received: dict[int, Update] = {}
        """Each peer's newest parameters, since the last exchange."""

    def covers(self, tag: int) -> int:
        """Up to the next exchange there is nothing to wait for."""
        period = self.parameters.period
        return tag + period - (tag + 1) % period - 1

    def arrived(self, update: Update) -> None:
        update.check_whole(self.setup.replica.layout.size)

    def lost(self, peer: int) -> None:
        """Nothing of it counts any more."""
        self._received.pop(peer, None)

    def joined(self, peer: int, iteration: int) -> list[Action]:
        """It counts in the next exchange."""
        return []

    def outgoing(self, own: LocalGradient) -> Outgoing:
        """Step; at the end of a period, tell everyone where that led."""
        replica = self.setup.replica
        replica.step(own.gradient)
        if not self._ends_period(own.iteration):
            return Outgoing(None, [])
        body = Mixed(own.iteration, own.batch_size)
        update = Update(self.setup.worker, body, (replica.snapshot(),))
        return Outgoing(update, self.to_all(update))

    def apply(self, incoming: Incoming) -> int:
        """At the end of a period, go on from the mean of what is here."""
        for update in sorted(incoming.received, key=lambda update: update.body.iteration):
            self._received[update.sender] = update
        if incoming.own is None:
            return 0
        updates = sorted([incoming.own, *self._received.values()], key=lambda update: update.sender)
        self._received.clear()
        mean = torch.zeros_like(self.setup.replica.parameters)
        for update in updates:
            update.add_to(mean, 1 / len(updates))
        self.setup.replica.merge(self._next_start(mean), 1.0)
        return len(updates) - 1

    def _ends_period(self, iteration: int) -> bool:
        return (iteration + 1) % self.parameters.period == 0

    def _next_start(self, mean: torch.Tensor) -> torch.Tensor:
        """The parameters [P] to go on from, given the mean of all workers'."""
        return mean


@register("exchange", "diloco")
class DiLoCoExchange(LocalSgdExchange):
    """As local SGD, but the mean movement of a period is a gradient for an outer optimizer with Nesterov momentum.

    Douillard et al., 2023 (arXiv:2311.08105). All workers hold the same outer state, as they see the same movements.
    """

    class Parameters(LocalSgdExchange.Parameters):
        """Defaults: the paper's."""

        period: int = Field(500, ge=1, description="Iterations between exchanges.")
        outer_learning_rate: float = Field(0.7, gt=0, description="Of the outer optimizer.")
        outer_momentum: float = Field(0.9, ge=0, lt=1, description="Nesterov's, of the outer optimizer.")

    parameters: Parameters

    def __init__(self, parameters: Parameters, setup: Setup) -> None:
        super().__init__(parameters, setup)
        self._start = setup.replica.parameters.clone()
        self._outer = self._optimizer()

    def _optimizer(self) -> torch.optim.Optimizer:
        rate, momentum = self.parameters.outer_learning_rate, self.parameters.outer_momentum
        return torch.optim.SGD([self._start], lr=rate, momentum=momentum, nesterov=momentum > 0)

    def state(self) -> Sequence[torch.Tensor]:
        """Where the period began, and the outer momentum."""
        momentum = self._outer.state[self._start].get("momentum_buffer")
        return [self._start.clone(), torch.empty(0) if momentum is None else momentum.clone()]

    def take_over(self, tensors: Sequence[torch.Tensor]) -> None:
        start, momentum = tensors
        self._start.copy_(start)
        if len(momentum):
            self._outer.state[self._start]["momentum_buffer"] = momentum.to(self._start.device, copy=True)

    def _next_start(self, mean: torch.Tensor) -> torch.Tensor:
        self._start.grad = self._start - mean
        self._outer.step()
        return self._start

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_outer": self._outer.state_dict()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._outer = self._optimizer()
        self._outer.load_state_dict(state["_outer"])
