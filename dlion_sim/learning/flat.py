"""A model's parameters as one flat vector."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from math import prod

import numpy as np
import torch
from torch import Tensor, nn

_ALIGNMENT = 64
"""Bytes, as of torch's own tensors."""


@dataclass(frozen=True)
class Layout:
    """Where each trainable variable of a model lies in a flat vector of `size` float32 entries.

    Variables stand in the order of `Module.named_parameters`, each in C order, without gaps.
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, module: nn.Module) -> Layout:
        named = dict(module.named_parameters())
        return cls(tuple(named), tuple(tuple(parameter.shape) for parameter in named.values()))

    def check_restored(self) -> None:
        """Raise ValueError for shapes, which may come from anybody, that no variables have: compiled code follows them.

        Which a model's are, and how long what is laid out so is, whoever uses them looks at.
        """
        shapes = self.shapes
        if {*map(type, (self.names, shapes, *shapes))} != {tuple} or len(self.names) != len(shapes):
            raise ValueError("its layout has no variables with shapes")
        if any(type(length) is not int or length < 0 for length in chain(*shapes)):
            raise ValueError("its layout has variables of no length")

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(map(prod, self.shapes))

    @property
    def size(self) -> int:
        """Entries of the flat vector, P."""
        return sum(self.sizes)

    def views(self, flat: Tensor) -> list[Tensor]:
        """The variables as views into `flat` [P], in order."""
        return [part.view(shape) for part, shape in zip(flat.split_with_sizes(self.sizes), self.shapes, strict=True)]


def copied(flat: Tensor) -> Tensor:
    """A copy of a flat vector [P] of float32, in a block that the C library takes from where such a vector was freed.

    Torch asks for aligned blocks, for which glibc before 2.38 takes no freed one of the same size: many replicas would
    take twice their memory. This one is aligned by hand, since rounding may depend on it.
    """
    if flat.device.type != "cpu":
        return flat.clone()
    block = np.empty(4 * len(flat) + _ALIGNMENT, np.uint8)
    begin = -block.ctypes.data % _ALIGNMENT
    return torch.from_numpy(block[begin : begin + 4 * len(flat)].view(np.float32)).copy_(flat)


def flatten(module: nn.Module) -> Tensor:
    """A copy of the parameters of `module` as a flat vector [P], laid out as `Layout.of(module)` says."""
    return torch.cat([parameter.detach().reshape(-1) for parameter in module.parameters()])
