"""The parameters that a worker trains; equal replicas share them, and their steps, until they differ."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from dlion_sim.learning.flat import Layout, copied
from dlion_sim.learning.optimizer import Moments, OptimizerKind, Rule, rule


def constant(step: int) -> float:
    """The factor on a constant learning rate after `step` steps."""
    return 1.0


class Replica:
    """One worker's parameters and the optimizer that trains them.

    Each write, by one of the methods, raises `version` by one. State is plain data: a replica can be pickled and goes
    on to the bit. `initial` [P] is copied. `momentum` is that of SGD. `decay` tells, by the steps taken, what part of
    `learning_rate` the next one has.
    """

    def __init__(
        self,
        layout: Layout,
        initial: Tensor,
        *,
        kind: OptimizerKind = "sgd",
        learning_rate: float,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        clip_norm: float | None = None,
        decay: Callable[[int], float] = constant,
    ) -> None:
        self.layout = layout
        self.version = 0
        self._rule = rule(kind, layout, momentum, weight_decay, clip_norm)
        self._initial_rate = learning_rate
        self._decay = decay
        self._steps = 0
        parameters = copied(initial.detach())
        self._state = State(parameters, self._rule.moments(parameters))

    def check_restored(self) -> None:
        """Raise ValueError for parameters, which may come from anybody, that are not laid out as it says."""
        parameters = self.parameters
        if parameters.dtype != torch.float32 or parameters.shape != (self.layout.size,):
            raise ValueError("it has a replica with other parameters than its layout's")
        if not parameters.is_contiguous():
            raise ValueError("it has a replica whose parameters do not lie side by side")

    def twin(self) -> Replica:
        """An equal replica, independent from now on."""
        self._state.owners += 1
        return copy.copy(self)

    @property
    def parameters(self) -> Tensor:
        """The present parameters [P], read-only; valid while `version` stays the same."""
        return self._state.parameters

    @property
    def decay(self) -> float:
        """The next step's factor on the initial learning rate."""
        return self._decay(self._steps)

    @property
    def learning_rate(self) -> float:
        return self._initial_rate * self.decay

    def step(self, gradient: Tensor) -> None:
        """One optimizer step with the mean gradient [P], which is not written, now or later."""
        before, rate = self._state, self.learning_rate
        self._steps += 1
        after = before.after(gradient, rate)
        if after is not None:
            self.version += 1
            before.owners -= 1
            after.owners += 1
            self._state = after
        else:
            state = self._writable()
            state.step(self._rule, gradient, rate)
            before.remember(gradient, rate, state)

    def step_by(self, add: Callable[[Tensor, float], None]) -> None:
        """As `step`, to the bit, with a gradient that `add` adds times a number to parameters, if steps are `plain`."""
        state, rate = self._writable(), self.learning_rate
        self._steps += 1
        add(state.parameters, -rate)

    @property
    def plain(self) -> bool:
        """Whether a step is that of plain SGD: it only subtracts the gradient times the learning rate."""
        return self._rule.plain

    @property
    def remembers(self) -> bool:
        """Whether steps depend on earlier gradients."""
        return self._rule.remembers

    def step_of(self, gradient: Tensor) -> Tensor:
        """The optimizer's step [P] by a gradient, which its state counts as taken; the parameters stay."""
        state, rate = self._writable(), self.learning_rate
        self._steps += 1
        before = state.parameters.clone()
        state.step(self._rule, gradient, rate)
        moved = state.parameters - before
        state.parameters.copy_(before)
        return moved

    def add(self, step: Tensor) -> None:
        """Add a step [P] to the parameters."""
        self._writable().parameters.add_(step)

    def merge(self, other: Tensor, share: float) -> None:
        """Move towards the parameters `other` [P]: w <- w - share * (w - other), exact at shares 0 and 1."""
        mine = self._writable().parameters
        if share == 1:
            mine.copy_(other)  # Interpolated, a parameter that is not finite would stay so.
        elif share:
            mine.lerp_(other, share)

    def mix(self, share: float, others: Iterable[tuple[Tensor, float]]) -> None:
        """Weigh the parameters against those of others ([P], weight each): w <- share * w + sum weight_j * w_j."""
        parameters = self._writable().parameters.mul_(share)
        for other, weight in others:
            parameters.add_(other, alpha=weight)

    def write(self, offset: int, values: Tensor) -> None:
        """Replace the parameters from entry `offset` on by `values` [m]."""
        self._writable().parameters[offset : offset + len(values)] = values

    def write_entries(self, indices: Tensor, values: Tensor) -> None:
        """Replace the parameters of distinct indices [m] by `values` [m]."""
        self._writable().parameters[indices] = values

    def begin_anew(self, parameters: Tensor, steps: int) -> None:
        """Take these parameters [P], which nobody writes, now or later, without a copy, after so many steps.

        The optimizer remembers no gradients.
        """
        self._steps = steps
        self._take(State(parameters, self._rule.moments(parameters)))
        self._state.is_seen = True

    def become(self, other: Replica) -> None:
        """Be equal to another replica of the same layout and optimizer, independent from now on."""
        self._steps = other._steps
        other._state.owners += 1
        self._take(other._state)

    def _take(self, state: State) -> None:
        self.version += 1
        self._state.owners -= 1
        self._state = state

    def snapshot(self) -> Tensor:
        """The present parameters [P], read-only, valid for ever."""
        self._state.is_seen = True
        return self._state.parameters

    def state(self) -> list[Tensor]:
        """All of it, for another replica to be like this one: float32 [m] each, not to be written.

        The number of steps, the parameters, and what the optimizer remembers, each as long on all replicas, but for
        what there is none of before the first step: that is empty.
        """
        moments = (torch.empty(0) if each is None else each.clone().reshape(-1) for each in self._state.moments)
        return [torch.tensor([float(self._steps)]), self.snapshot(), *moments]

    def take_over(self, tensors: Sequence[Tensor]) -> None:
        """Take the `state` of another replica."""
        steps, parameters, *moments = tensors
        self._steps = int(steps)
        self._writable().take_over(parameters, moments)

    def _writable(self) -> State:
        """The state, which from now on is this replica's alone, about to be written."""
        self.version += 1
        if self._state.owners > 1:
            self._state.owners -= 1
            self._state = self._state.copy()
        self._state.prepare_write()
        return self._state


class State:
    """Parameters [P] and moments, of one replica or of several equal ones."""

    def __init__(self, parameters: Tensor, moments: Moments) -> None:
        self.parameters = parameters
        self.owners = 1
        self.is_seen = False
        """Whether a snapshot or another replica relies on the parameters."""
        self.writes = 0
        self.moments = moments
        self._step: tuple[weakref.ref[Tensor], float, weakref.ref[State], int] | None = None
        """The step that one of the owners has taken last: gradient, learning rate, and the state after it."""

    def copy(self) -> State:
        """A copy, of a single owner."""
        moments = [moment if moment is None else moment.clone() for moment in self.moments]
        return State(copied(self.parameters), moments)

    def prepare_write(self) -> None:
        """Stop being what others have seen, or what the step of a former owner began with or led to."""
        if self.is_seen:
            self.parameters = copied(self.parameters)
            self.is_seen = False
        self.writes += 1
        self._step = None

    def take_over(self, parameters: Tensor, moments: Sequence[Tensor]) -> None:
        """Be like that; a moment that is empty is none."""
        self.parameters.copy_(parameters)
        # Each where the own one lies: Adam counts its steps in main memory, wherever the parameters are.
        places = [(self.parameters.device, (-1,)) if own is None else (own.device, own.shape) for own in self.moments]
        self.moments = [
            theirs.to(device, copy=True).reshape(shape) if len(theirs) else None
            for (device, shape), theirs in zip(places, moments, strict=True)
        ]

    def step(self, rule: Rule, gradient: Tensor, learning_rate: float) -> None:
        """One step of all owners."""
        rule.step(self.parameters, self.moments, gradient, learning_rate)

    def after(self, gradient: Tensor, learning_rate: float) -> State | None:
        """The state after that step, if another owner has taken it and not gone on since."""
        if self._step is None:
            return None
        its_gradient, its_rate, state, writes = self._step
        after = state()
        alike = its_gradient() is gradient and its_rate == learning_rate
        return after if alike and after is not None and after.writes == writes else None

    def remember(self, gradient: Tensor, learning_rate: float, state: State) -> None:
        """An owner has taken this step, into another state."""
        if state is not self:
            self._step = weakref.ref(gradient), learning_rate, weakref.ref(state), state.writes

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_step": None}  # weak references can't be pickled


def look_at(model: nn.Module, replica: Replica) -> list[nn.Parameter]:
    """The parameters of `model`, made views into those of `replica`, which it computes with from now on.

    Where these are on another device than the model, they are copied there. Raises ValueError for a replica of another
    model.
    """
    parameters = list(model.parameters())
    with torch.inference_mode(False):  # What is copied in that mode is no tensor that a parameter can have.
        there = replica.parameters.to(parameters[0].device)
    for parameter, view in zip(parameters, replica.layout.views(there), strict=True):
        if view.shape != parameter.shape:  # which kernels trust
            raise ValueError(
                f"a replica has a variable {list(view.shape)} where its model's is {list(parameter.shape)}"
            )
        parameter.data = view
    return parameters
