"""Encoding a state: Python's pickler, which refers to the constructors of `decoding` only."""

from __future__ import annotations

import functools
import pickle
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from enum import Enum
from io import BytesIO
from types import MethodType
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dlion_sim.simulation.checkpointing import decoding
from dlion_sim.simulation.checkpointing.kinds import Kinds, UnknownKindError

Block = Tensor | npt.NDArray[Any]
"""Memory outside of the pickle: uint8 [n] of tensors that share it, on their device, or a contiguous array."""
_Made = tuple[Any, ...]
"""As returned by `__reduce__`."""


def encode(state: object, kinds: Kinds) -> tuple[memoryview, list[Block]]:
    """The state without its arrays and tensors, and their memory, which is not copied.

    Raises UnknownKindError for an object that a checkpoint cannot hold.
    """
    file = BytesIO()
    pickler = _Pickler(file, kinds)
    pickler.dump(state)
    return file.getbuffer(), pickler.blocks


class _Pickler(pickle.Pickler):
    def __init__(self, file: BytesIO, kinds: Kinds) -> None:
        super().__init__(file, protocol=5)
        self.kinds = kinds
        self.blocks: list[Block] = []
        self._numbers: dict[tuple[torch.device, int, int], int] = {}
        """Numbers of blocks of tensors, by their memory."""

    def reducer_override(self, thing: Any) -> Any:
        kind = type(thing)
        reduce = _REDUCERS.get(kind)
        if reduce is not None:
            return reduce(self, thing)
        if kind is type(decoding.kind) and decoding.CONSTRUCTORS.get(thing.__name__) is thing:
            return NotImplemented
        if isinstance(thing, type):
            return decoding.kind, (self.kinds.name(thing),)
        if isinstance(thing, np.generic):
            return decoding.scalar, (thing.dtype.str, thing.tobytes())
        name = self.kinds.name(kind)
        if isinstance(thing, Enum):
            return decoding.instance, (name, thing.value)
        if isinstance(thing, msgspec.Struct):
            return decoding.instance, (name, *msgspec.structs.astuple(thing))
        made_of = thing.__getnewargs__() if hasattr(thing, "__getnewargs__") else ()
        return decoding.instance, (name, *made_of), thing.__getstate__()

    def block_of(self, tensor: Tensor) -> int:
        storage = tensor.untyped_storage()
        memory = tensor.device, storage.data_ptr(), storage.nbytes()
        if memory not in self._numbers:
            self._numbers[memory] = self.add(torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage))
        return self._numbers[memory]

    def add(self, block: Block) -> int:
        self.blocks.append(block)
        return len(self.blocks) - 1


def _method(pickler: _Pickler, method: MethodType) -> _Made:
    name = method.__func__.__name__
    pickler.kinds.method(method.__self__, name)
    return decoding.method, (method.__self__, name)


def _partial(_: _Pickler, call: functools.partial[Any]) -> _Made:
    if not isinstance(call.func, MethodType):
        raise UnknownKindError(f"a partial of {call.func!r}")
    return decoding.partial, (call.func, call.args, call.keywords)


def _default(_: _Pickler, mapping: defaultdict[Any, Any]) -> _Made:
    factory = mapping.default_factory
    name = None if factory is None else getattr(factory, "__name__", "")
    if name is not None and decoding.FACTORIES.get(name) is not factory:
        raise UnknownKindError(f"a defaultdict of {factory!r}")
    return decoding.default, (name,), None, None, iter(mapping.items())


def _array(pickler: _Pickler, array: npt.NDArray[Any]) -> _Made:
    if array.dtype.hasobject:
        raise UnknownKindError("an array of objects")
    order = "F" if np.isfortran(array) else "C"
    block = np.asarray(array, order=order)  # type: ignore[call-overload]
    described = np.lib.format.dtype_to_descr(array.dtype)
    return decoding.array, (pickler.add(block), described, array.shape, order)


def _tensor(pickler: _Pickler, tensor: Tensor) -> _Made:
    dtype = str(tensor.dtype)
    if tensor.layout is not torch.strided or dtype not in decoding.DTYPES or tensor.is_conj() or tensor.is_neg():
        raise UnknownKindError(f"a tensor of {tensor.layout} and {dtype}")
    shape = tuple(tensor.shape), tensor.stride(), tensor.storage_offset()
    return decoding.tensor, (pickler.block_of(tensor), str(tensor.device), dtype, *shape, tensor.requires_grad)


def _generator(_: _Pickler, generator: np.random.Generator) -> _Made:
    bits: Any = generator.bit_generator
    seed = bits.seed_seq
    if type(bits) is not np.random.PCG64 or type(seed) is not np.random.SeedSequence:
        raise UnknownKindError(f"a random stream of {type(bits).__name__}")
    return decoding.generator, (bits.state, seed.entropy, seed.spawn_key, seed.n_children_spawned)


_REDUCERS: dict[type, Callable[[_Pickler, Any], _Made]] = {
    MethodType: _method,
    functools.partial: _partial,
    deque: lambda _, items: (decoding.queue, (items.maxlen,), None, iter(items)),
    OrderedDict: lambda _, mapping: (decoding.ordered, (), None, None, iter(mapping.items())),
    Counter: lambda _, mapping: (decoding.counter, (), None, None, iter(mapping.items())),
    defaultdict: _default,
    np.ndarray: _array,
    Tensor: _tensor,
    np.random.Generator: _generator,
}
