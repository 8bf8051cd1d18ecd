"""What a checkpoint's state is made with: all that a file can ask for, each with what is written down of an object."""

from __future__ import annotations

import functools
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from types import MethodType
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dlion_sim.learning import accelerator
from dlion_sim.simulation.checkpointing.kinds import Kinds, UnknownKindError

FACTORIES: dict[str, Callable[[], object]] = {
    each.__name__: each for each in (bool, int, float, str, tuple, list, set, dict, deque)
}
"""What a defaultdict may make."""
_FLOATS = torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128
_INTEGERS = torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64
DTYPES = {str(dtype): dtype for dtype in (*_FLOATS, *_INTEGERS)}


class Material:
    """The classes that there are, and the memory of arrays and tensors: `blocks`, uint8 [n] each."""

    def __init__(self, kinds: Kinds, blocks: Sequence[Tensor]) -> None:
        self.kinds = kinds
        self._blocks = list(blocks)
        self._used: set[int] = set()
        """Of which something was made."""

    def own_block(self, number: int) -> Tensor:
        """What an array consists of, in main memory, which it must not share with anything."""
        place = range(len(self._blocks))[number]
        if place in self._used:
            raise ValueError("it has an array that shares its memory")
        self._used.add(place)
        block, self._blocks[place] = self._blocks[place], torch.empty(0, dtype=torch.uint8)
        return block

    def block(self, number: int, device: str) -> Tensor:
        """What a tensor consists of, perhaps with others, on its device."""
        self._used.add(range(len(self._blocks))[number])
        if torch.device(device).type not in ("cpu", accelerator.KIND):
            raise ValueError(f"it has a tensor on {device}")
        if self._blocks[number].device != torch.device(device):
            self._blocks[number] = self._blocks[number].to(device)
        return self._blocks[number]


def instance(material: Material, name: str, *arguments: object) -> object:
    """One of a listed class, without its state."""
    kind = material.kinds.named(name)
    return kind(*arguments) if material.kinds.is_by_value(kind) else kind.__new__(kind, *arguments)


def kind(material: Material, name: str) -> type:
    """A listed class itself."""
    return material.kinds.named(name)


def method(material: Material, owner: object, name: str) -> MethodType:
    """A listed method of an object."""
    return material.kinds.method(owner, name)


def partial(_: Material, function: object, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> object:
    """A planned call."""
    if not isinstance(function, MethodType):
        raise UnknownKindError(f"it plans to call a {type(function).__name__}")
    return functools.partial(function, *arguments, **keywords)


def queue(_: Material, longest: int | None) -> deque[Any]:
    """An empty deque."""
    return deque(maxlen=longest)


def ordered(_: Material) -> OrderedDict[Any, Any]:
    """An empty OrderedDict."""
    return OrderedDict()


def counter(_: Material) -> Counter[Any]:
    """An empty Counter."""
    return Counter()


def default(_: Material, factory: str | None) -> defaultdict[Any, Any]:
    """An empty defaultdict."""
    return defaultdict(None if factory is None else FACTORIES[factory])


def array(material: Material, block: int, dtype: Any, shape: tuple[int, ...], order: Any) -> npt.NDArray[Any]:
    """An array, in its own memory."""
    described = np.lib.format.descr_to_dtype(dtype)
    content: npt.NDArray[Any] = np.frombuffer(material.own_block(block).numpy(), described)  # refuses objects
    return content.reshape(shape, order=order)


def scalar(_: Material, dtype: str, content: bytes) -> Any:
    """A number of numpy's."""
    [number] = np.frombuffer(content, np.dtype(str(dtype)))  # refuses objects
    return number


def tensor(
    material: Material,
    block: int,
    device: str,
    dtype: str,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    offset: int,
    requires_grad: bool,
) -> Tensor:
    """A tensor, in the memory that it shares with those that it shared it with; torch checks that it lies within."""
    return (
        material.block(block, device)
        .view(DTYPES[dtype])
        .as_strided(size, stride, offset)
        .requires_grad_(bool(requires_grad))
    )


def generator(_: Material, state: Any, entropy: Any, spawn_key: Any, spawned: int) -> np.random.Generator:
    """A random stream where it was."""
    seed = np.random.SeedSequence(entropy, spawn_key=spawn_key, n_children_spawned=spawned)
    bits = np.random.PCG64(seed)
    bits.state = state
    return np.random.Generator(bits)


MAKERS: Mapping[str, Callable[..., object]] = {
    maker.__name__: maker
    for maker in (instance, kind, method, partial, queue, ordered, counter, default, array, scalar, tensor, generator)
}
