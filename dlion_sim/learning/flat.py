"""A model's parameters as one flat vector, and the replica of them that a worker trains."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal

import torch
from torch import Tensor, nn

OptimizerKind = Literal["sgd", "adam"]


@dataclass(frozen=True)
class Layout:
    """Where each trainable variable of a model lies in a flat vector of `size` float32 entries.

    Variables stand in the order of `Module.named_parameters`, each in C order, without gaps.
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, module: nn.Module) -> Layout:
        """The layout of the parameters of `module`."""
        named = dict(module.named_parameters())
        return cls(tuple(named), tuple(tuple(parameter.shape) for parameter in named.values()))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Entries of each variable."""
        return tuple(map(prod, self.shapes))

    @property
    def size(self) -> int:
        """Entries of the flat vector, P."""
        return sum(self.sizes)

    def views(self, flat: Tensor) -> list[Tensor]:
        """The variables as views into `flat` [P], in order."""
        return [part.view(shape) for part, shape in zip(flat.split_with_sizes(self.sizes), self.shapes, strict=True)]


def flatten(module: nn.Module) -> Tensor:
    """A copy of the parameters of `module` as a flat vector [P], laid out as `Layout.of(module)` says."""
    return torch.cat([parameter.detach().reshape(-1) for parameter in module.parameters()])


class Replica:
    """One worker's parameters and the optimizer that trains them.

    `parameters` [P] stays the same tensor for the replica's life: everything writes into it, through `step` or `merge`,
    and each write raises `version` by one. State is plain data: a replica can be pickled and goes on to the bit.

    `initial` [P] is copied. `momentum` is that of SGD; Adam (Kingma and Ba, ICLR 2015) keeps torch's default moments.
    """

    def __init__(
        self,
        layout: Layout,
        initial: Tensor,
        *,
        kind: OptimizerKind = "sgd",
        learning_rate: float,
        momentum: float = 0.0,
    ) -> None:
        self.layout = layout
        self.parameters = initial.detach().clone()
        self.version = 0
        self._optimizer = _optimizer(self.parameters, kind, learning_rate, momentum)
        self._snapshot: Tensor | None = None

    @property
    def learning_rate(self) -> float:
        """Step size of the optimizer."""
        return float(self._optimizer.param_groups[0]["lr"])

    def step(self, gradient: Tensor) -> None:
        """One optimizer step with the mean gradient [P], which is left as it is."""
        self.parameters.grad = gradient
        self._optimizer.step()
        self.parameters.grad = None
        self._written()

    def merge(self, other: Tensor, share: float) -> None:
        """Move towards the parameters `other` [P]: w <- w - share * (w - other), exact at shares 0 and 1."""
        self.parameters.lerp_(other, share)
        self._written()

    def write(self, offset: int, values: Tensor) -> None:
        """Replace the parameters from entry `offset` on by `values` [m]."""
        self.parameters[offset : offset + len(values)] = values
        self._written()

    def snapshot(self) -> Tensor:
        """A copy of the parameters [P] as they are now, shared by all callers between two writes: not to be written."""
        if self._snapshot is None:
            self._snapshot = self.parameters.clone()
        return self._snapshot

    def _written(self) -> None:
        self.version += 1
        self._snapshot = None


def look_at(model: nn.Module, replica: Replica) -> list[nn.Parameter]:
    """The parameters of `model`, made views into those of `replica`, which it computes with from now on."""
    parameters = list(model.parameters())
    for parameter, view in zip(parameters, replica.layout.views(replica.parameters), strict=True):
        parameter.data = view
    return parameters


def _optimizer(parameters: Tensor, kind: OptimizerKind, learning_rate: float, momentum: float) -> torch.optim.Optimizer:
    match kind:
        case "sgd":
            return torch.optim.SGD([parameters], lr=learning_rate, momentum=momentum)
        case "adam":
            return torch.optim.Adam([parameters], lr=learning_rate)
        case _:
            raise ValueError(f"unknown optimizer {kind!r}")
