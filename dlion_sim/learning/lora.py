"""Low-rank adaptation (Hu et al., ICLR 2022): only small additions to a model's dense layers are trained.

All other parameters are frozen, as buffers: they are not in the flat parameters, and never sent.
"""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Collection
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from dlion_sim.errors import InputError
from dlion_sim.files import read_bytes

_BASE = "lora.base"
_MOST_BYTES = 2**33
"""Maximum size of a file of parameters."""


class LowRankLinear(nn.Module):
    """A dense layer, frozen, and a product of two thin matrices added to it: W x + b + (alpha / rank) * B A x.

    B is initially zero, so that the layer's outputs are initially unchanged.
    """

    def __init__(self, frozen: nn.Linear, rank: int, alpha: float) -> None:
        super().__init__()
        self.frozen = frozen
        self._scale = alpha / rank
        self.down = nn.Parameter(torch.empty(rank, frozen.in_features))
        self.up = nn.Parameter(torch.zeros(frozen.out_features, rank))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))

    def forward(self, inputs: Tensor) -> Tensor:
        """Of [..., I], the outputs [..., O]."""
        added = linear(linear(inputs, self.down), self.up)
        frozen: Tensor = self.frozen(inputs)
        return frozen + self._scale * added


def is_of_adapter(name: str) -> bool:
    """Whether a variable of that name is one of a `LowRankLinear`, which trains no other."""
    return name.endswith((".down", ".up"))


def adapted(model: nn.Module, rank: int, alpha: float, targets: Collection[str] | None = None) -> nn.Module:
    """`model` itself, frozen except for adapters of its dense layers, initialised by torch's generator.

    `targets` are the ends of the layers' names, e.g. "query_key_value"; by default all. Raises InputError if there is
    no such layer.
    """
    dense = {name: layer for name, layer in model.named_modules() if type(layer) is nn.Linear}
    ends = {end for name in dense for end in _ends(name)}
    for target in targets or ():
        if target not in ends:
            allowed = ", ".join(dict.fromkeys(name.rpartition(".")[2] for name in dense))
            raise InputError(f"no dense layer is named '{target}'", path="lora.targets", allowed=allowed)
    if not dense:
        raise InputError("the model has no dense layers to adapt", path="lora")
    _freeze(model)
    for name, layer in dense.items():
        if targets is None or not _ends(name).isdisjoint(targets):
            above, _, last = name.rpartition(".")
            setattr(model.get_submodule(above), last, LowRankLinear(layer, rank, alpha))
    return model


def load_base(model: nn.Module, file: Path, sha256: str | None = None) -> str:
    """Load a state_dict that `torch.save` wrote into `model`, and return the file's SHA-256.

    Only tensors are read: nothing in the file is executed. Raises InputError if it cannot be read, differs from
    `sha256`, or does not fit.
    """
    try:
        content = read_bytes(file, _MOST_BYTES)
    except InputError as error:
        raise InputError(f"{file} {error.problem}", path=_BASE, allowed=error.allowed) from None
    found = hashlib.sha256(content).hexdigest()
    if sha256 is not None and found != sha256:
        raise InputError(f"{file} has changed: its SHA-256 is {found}", path=_BASE, allowed=sha256)
    try:
        state = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        model.load_state_dict(state)
    except Exception as error:  # a hostile file may raise anything
        reason = " ".join(str(error).split())
        raise InputError(
            f"{file} does not hold the model's parameters: {reason[:300]}",
            path=_BASE,
            allowed="what torch.save writes of the model's state_dict()",
        ) from None
    return found


def _ends(name: str) -> set[str]:
    """All ends of a dotted name."""
    parts = name.split(".")
    return {".".join(parts[begin:]) for begin in range(len(parts))}


def _freeze(model: nn.Module) -> None:
    """Turn all parameters into buffers; shared ones stay shared."""
    for module in model.modules():
        for name, parameter in list(module.named_parameters(recurse=False)):
            delattr(module, name)
            module.register_buffer(name, parameter.data)
