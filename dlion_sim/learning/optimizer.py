"""The rules by which a gradient changes parameters, as torch's functions.

The classes around them cost several times what a small model's step does, and hide the moments, which replicas share.
"""

from __future__ import annotations

from math import prod
from typing import Literal, Protocol

import torch
from torch import Tensor
from torch.optim._muon import muon
from torch.optim.adam import adam
from torch.optim.sgd import sgd

from dlion_sim.learning.flat import Layout
from dlion_sim.learning.lora import is_of_adapter
from dlion_sim.learning.process import one_core

OptimizerKind = Literal["sgd", "adam", "adamw", "muon"]

Moments = list[Tensor | None]
"""The state of a rule, from earlier gradients."""


class Rule(Protocol):
    """An optimizer without its state."""

    @property
    def remembers(self) -> bool:
        """Whether a step depends on earlier gradients."""

    @property
    def plain(self) -> bool:
        """Whether a step only subtracts the gradient times the learning rate."""

    def moments(self, parameters: Tensor) -> Moments:
        """Those before the first step of `parameters` [P]."""

    def step(self, parameters: Tensor, moments: Moments, gradient: Tensor, learning_rate: float) -> None:
        """Change `parameters` [P] and `moments` by `gradient` [P], which is left as it is."""


class Sgd:
    """SGD with or without momentum; weights decay by a part of the gradient."""

    def __init__(self, momentum: float, weight_decay: float) -> None:
        self._momentum = momentum
        self._weight_decay = weight_decay

    @property
    def remembers(self) -> bool:
        return self._momentum > 0

    @property
    def plain(self) -> bool:
        return not (self._momentum or self._weight_decay)

    def moments(self, parameters: Tensor) -> Moments:
        """None: the first gradient is the first velocity."""
        return [None]

    def step(self, parameters: Tensor, moments: Moments, gradient: Tensor, learning_rate: float) -> None:
        """w <- w - learning_rate * v, with v <- momentum * v + g + weight_decay * w."""
        sgd(
            [parameters],
            [gradient],
            moments,
            foreach=False,
            weight_decay=self._weight_decay,
            momentum=self._momentum,
            lr=learning_rate,
            dampening=0.0,
            nesterov=False,
            maximize=False,
        )


class Adam:
    """Adam (Kingma and Ba, ICLR 2015) with torch's default moments; a weight decay is decoupled from these.

    That is AdamW (Loshchilov and Hutter, ICLR 2019): w <- (1 - learning_rate * weight_decay) * w before the step.
    """

    remembers = True
    plain = False

    def __init__(self, weight_decay: float = 0.0) -> None:
        self._weight_decay = weight_decay

    def moments(self, parameters: Tensor) -> Moments:
        """First, second, and the number of steps."""
        return [torch.zeros_like(parameters), torch.zeros_like(parameters), torch.tensor(0.0)]

    def step(self, parameters: Tensor, moments: Moments, gradient: Tensor, learning_rate: float) -> None:
        first, second, steps = (moment for moment in moments if moment is not None)
        if self._weight_decay:
            parameters.mul_(1 - learning_rate * self._weight_decay)
        adam(
            [parameters],
            [gradient],
            [first],
            [second],
            [],
            [steps],
            foreach=False,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=learning_rate,
            weight_decay=0.0,
            eps=1e-8,
            maximize=False,
        )


class Muon:
    """Muon (Jordan et al., 2024) for hidden matrices, AdamW for the rest.

    The rest are vectors, embeddings (with `embed` in their name) and the output's matrix: that of a module whose name
    ends with `head`, or else the last one, unless only adapters are trained (see `lora`): the last one may be any
    layer's. A convolution's weights are a matrix with a row for each output channel.
    Updates have the root mean square of AdamW's ("match_rms_adamw"), so that both share learning rate and weight decay;
    torch's defaults otherwise.
    """

    remembers = True
    plain = False

    def __init__(self, layout: Layout, weight_decay: float) -> None:
        self._weight_decay = weight_decay
        self._adam = Adam(weight_decay)
        ends = torch.tensor(layout.sizes).cumsum(0).tolist()
        matrices = [
            (end - prod(shape), shape[0], prod(shape[1:]))
            for name, shape, end in zip(layout.names, layout.shapes, ends, strict=True)
            if len(shape) > 1 and "embed" not in name and not _is_of_head(name)
        ]
        is_last_hidden = any(map(_is_of_head, layout.names)) or all(map(is_of_adapter, layout.names))
        self._matrices = matrices if is_last_hidden else matrices[:-1]
        """First entry, rows and columns of each."""
        is_other = torch.ones(layout.size, dtype=torch.bool)
        for begin, rows, columns in self._matrices:
            is_other[begin : begin + rows * columns] = False
        self._others = is_other.nonzero()[:, 0]
        """Entries of the rest, on the parameters' device once there are moments."""

    def moments(self, parameters: Tensor) -> Moments:
        """Momentum of all, of which matrices' is used; first, second and the number of steps of the others."""
        self._others = self._others.to(parameters.device)
        return [torch.zeros_like(parameters), *self._adam.moments(parameters[self._others])]

    def step(self, parameters: Tensor, moments: Moments, gradient: Tensor, learning_rate: float) -> None:
        momentum, *of_others = moments
        assert momentum is not None
        others = parameters[self._others]
        self._adam.step(others, of_others, gradient[self._others], learning_rate)
        parameters[self._others] = others
        with one_core():  # Shared among several, sums of products would depend on their number.
            muon(
                self._views(parameters),
                self._views(gradient),
                self._views(momentum),
                foreach=False,
                lr=learning_rate,
                weight_decay=self._weight_decay,
                momentum=0.95,
                nesterov=True,
                ns_coefficients=(3.4445, -4.775, 2.0315),
                ns_steps=5,
                eps=1e-7,
                adjust_lr_fn="match_rms_adamw",
                has_complex=False,
            )

    def _views(self, flat: Tensor) -> list[Tensor]:
        return [flat[begin : begin + rows * columns].view(rows, columns) for begin, rows, columns in self._matrices]


def _is_of_head(name: str) -> bool:
    return name.rpartition(".")[0].endswith("head")


class Clipped:
    """Another rule, with a gradient that is longer than `norm` shortened to it (Pascanu et al., ICML 2013)."""

    plain = False

    def __init__(self, rule: Rule, norm: float) -> None:
        self._rule = rule
        self._norm = norm

    @property
    def remembers(self) -> bool:
        return self._rule.remembers

    def moments(self, parameters: Tensor) -> Moments:
        return self._rule.moments(parameters)

    def step(self, parameters: Tensor, moments: Moments, gradient: Tensor, learning_rate: float) -> None:
        """A step of the other rule, by what `torch.nn.utils.clip_grad_norm_` makes of the gradient."""
        with one_core():  # shared among several, the sum of squares would depend on their number
            length = torch.linalg.vector_norm(gradient)
        part = (self._norm / (length + 1e-6)).clamp_(max=1.0)
        self._rule.step(parameters, moments, gradient * part, learning_rate)


def rule(
    kind: OptimizerKind, layout: Layout, momentum: float, weight_decay: float, clip_norm: float | None = None
) -> Rule:
    """The rule by its name, for parameters of that layout.

    `momentum` is that of sgd; without `clip_norm` gradients are not clipped.
    """
    match kind:
        case "sgd":
            named: Rule = Sgd(momentum, weight_decay)
        case "adam" | "adamw":
            named = Adam(weight_decay)
        case "muon":
            named = Muon(layout, weight_decay)
        case _:
            raise ValueError(f"unknown optimizer {kind!r}")
    return named if clip_norm is None else Clipped(named, clip_norm)
