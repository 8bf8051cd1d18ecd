"""Decoding a state that `encoding` wrote: Python's own unpickler, restricted so that it executes nothing.

It knows the opcodes of plain data, finds only the `CONSTRUCTORS` of this module by name, and calls nothing else. These
make arrays, tensors, collections, and instances of the classes that `kinds` lists, without their `__init__`. Of such a
class only `__setstate__` runs and, once all is decoded, `check_restored`: indices that compiled code uses must be
valid.
"""

from __future__ import annotations

import functools
import pickle
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from sys import intern
from types import MethodType
from typing import Any, ClassVar

import msgspec
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dlion_sim.learning import accelerator
from dlion_sim.simulation.checkpointing.kinds import Kinds, UnknownKindError

FACTORIES: dict[str, Callable[[], object]] = {
    each.__name__: each for each in (bool, int, float, str, tuple, list, set, dict, deque)
}
"""The factories that a defaultdict may have."""
_FLOATS = torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128
_INTEGERS = torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64
DTYPES = {str(dtype): dtype for dtype in (*_FLOATS, *_INTEGERS)}
_LOAD: Mapping[int, Callable[[Any], None]] = pickle._Unpickler.dispatch
_PLAIN = (
    *(pickle.PROTO, pickle.FRAME, pickle.STOP, pickle.MARK, pickle.MEMOIZE, pickle.BINGET, pickle.LONG_BINGET),
    *(pickle.NONE, pickle.NEWTRUE, pickle.NEWFALSE, pickle.BINFLOAT),
    *(pickle.BININT, pickle.BININT1, pickle.BININT2, pickle.LONG1, pickle.LONG4),
    *(pickle.SHORT_BINUNICODE, pickle.BINUNICODE, pickle.BINUNICODE8),
    *(pickle.SHORT_BINBYTES, pickle.BINBYTES, pickle.BINBYTES8),
    *(pickle.EMPTY_TUPLE, pickle.EMPTY_LIST, pickle.EMPTY_DICT, pickle.EMPTY_SET, pickle.FROZENSET),
    *(pickle.TUPLE, pickle.TUPLE1, pickle.TUPLE2, pickle.TUPLE3, pickle.STACK_GLOBAL),
)
"""Opcodes that the unpickler handles itself."""


class Decoder(pickle._Unpickler):
    """Decodes what `encoding` wrote. `blocks` are the memory of arrays and tensors: uint8 [n] each.

    Raises an exception of any kind, without effects, for anything that `encoding` never writes.
    """

    stack: list[Any]
    metastack: list[list[Any]]
    """The stacks below the marks."""

    def __init__(self, kinds: Kinds, blocks: Sequence[Tensor]) -> None:
        self.kinds = kinds
        self._blocks = list(blocks)
        self._used: set[int] = set()
        """Numbers of the blocks that something was made of."""
        self._checked: list[Any] = []
        """Objects to check in the end, when none of their parts changes any more."""

    def decode(self, data: bytes) -> Any:
        """The state that was encoded as `data`."""
        super().__init__(BytesIO(data))
        state = self.load()
        for made in self._checked:
            made.check_restored()
        return state

    def find_class(self, module: str, name: str) -> Any:
        """A constructor of this module."""
        if module != __name__ or name not in CONSTRUCTORS:
            raise UnknownKindError(f"it asks for {module}.{name}")
        return CONSTRUCTORS[name]

    def own_block(self, number: int) -> Tensor:
        """The memory of an array, which it must not share."""
        place = range(len(self._blocks))[number]
        if place in self._used:
            raise ValueError("it has an array that shares its memory")
        self._used.add(place)
        block, self._blocks[place] = self._blocks[place], torch.empty(0, dtype=torch.uint8)
        return block

    def block(self, number: int, device: str) -> Tensor:
        """The memory of a tensor, perhaps of several, on its device."""
        self._used.add(range(len(self._blocks))[number])
        if torch.device(device).type not in ("cpu", accelerator.KIND):
            raise ValueError(f"it has a tensor on {device}")
        if self._blocks[number].device != torch.device(device):
            self._blocks[number] = self._blocks[number].to(device)
        return self._blocks[number]

    def _reduce(self) -> None:
        arguments, constructor = self.stack.pop(), self.stack.pop()
        if not any(constructor is each for each in CONSTRUCTORS.values()):
            raise UnknownKindError(f"it calls a {type(constructor).__name__}")
        made = constructor(self, *arguments)
        if constructor is instance and hasattr(made, "check_restored"):
            self._checked.append(made)
        self.stack.append(made)

    def _build(self) -> None:
        state, made = self.stack.pop(), self.stack[-1]
        kind = type(made)
        if self.kinds.is_by_value(kind):
            raise UnknownKindError(f"it changes a {self.kinds.name(kind)}")
        self.kinds.name(kind)
        if hasattr(kind, "__setstate__"):
            self.kinds.check_attributes(kind, state if isinstance(state, dict) else ())
            kind.__setstate__(made, state)
            return
        attributes, slots = state if isinstance(state, tuple) else (state, None)
        names = [*(attributes or ()), *(slots or ())]
        self.kinds.check_attributes(kind, names)
        if any(name.startswith("__") for name in names):
            raise UnknownKindError(f"it gives names of Python's own to a {self.kinds.name(kind)}")
        if attributes:
            vars(made).update({intern(name): value for name, value in attributes.items()})
        for name, value in (slots or {}).items():
            object.__setattr__(made, name, value)

    def _bytearray(self) -> None:
        read: Callable[[int], bytes] = self.read  # type: ignore[attr-defined]
        self.stack.append(bytearray(read(int.from_bytes(read(8), "little"))))  # no more memory than there are bytes

    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = {
        **{opcode[0]: _LOAD[opcode[0]] for opcode in _PLAIN},
        pickle.BYTEARRAY8[0]: _bytearray,
        pickle.REDUCE[0]: _reduce,
        pickle.BUILD[0]: _build,
    }


def _fills(opcode: bytes, container: Callable[[Decoder], object], *types: type) -> None:
    """Let the decoder know an opcode that fills a container, if that is of one of these types exactly."""

    def load(decoder: Decoder) -> None:
        if type(container(decoder)) not in types:
            raise UnknownKindError(f"it fills a {type(container(decoder)).__name__}")
        _LOAD[opcode[0]](decoder)

    Decoder.dispatch[opcode[0]] = load


_fills(pickle.APPEND, lambda decoder: decoder.stack[-2], list, deque)
_fills(pickle.APPENDS, lambda decoder: decoder.metastack[-1][-1], list, deque)
_fills(pickle.SETITEM, lambda decoder: decoder.stack[-3], dict, OrderedDict, Counter, defaultdict)
_fills(pickle.SETITEMS, lambda decoder: decoder.metastack[-1][-1], dict, OrderedDict, Counter, defaultdict)
_fills(pickle.ADDITEMS, lambda decoder: decoder.metastack[-1][-1], set)


def instance(decoder: Decoder, name: str, *arguments: object) -> object:
    """An instance of a listed class, without its state."""
    kind = decoder.kinds.named(name)
    if issubclass(kind, msgspec.Struct):  # Some of its fields may be given by name only.
        return kind(**dict(zip(kind.__struct_fields__, arguments, strict=True)))
    return kind(*arguments) if decoder.kinds.is_by_value(kind) else kind.__new__(kind, *arguments)


def kind(decoder: Decoder, name: str) -> type:
    """A listed class itself."""
    return decoder.kinds.named(name)


def method(decoder: Decoder, owner: object, name: str) -> MethodType:
    """A listed method of an object."""
    return decoder.kinds.method(owner, name)


def partial(_: Decoder, function: object, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> object:
    """A planned call."""
    if not isinstance(function, MethodType):
        raise UnknownKindError(f"it plans to call a {type(function).__name__}")
    return functools.partial(function, *arguments, **keywords)


def queue(_: Decoder, longest: int | None) -> deque[Any]:
    """An empty deque."""
    return deque(maxlen=longest)


def ordered(_: Decoder) -> OrderedDict[Any, Any]:
    """An empty OrderedDict."""
    return OrderedDict()


def counter(_: Decoder) -> Counter[Any]:
    """An empty Counter."""
    return Counter()


def default(_: Decoder, factory: str | None) -> defaultdict[Any, Any]:
    """An empty defaultdict."""
    return defaultdict(None if factory is None else FACTORIES[factory])


def array(decoder: Decoder, block: int, dtype: Any, shape: tuple[int, ...], order: Any) -> npt.NDArray[Any]:
    """An array, in its own memory."""
    described = np.lib.format.descr_to_dtype(dtype)
    content: npt.NDArray[Any] = np.frombuffer(decoder.own_block(block).numpy(), described)  # refuses objects
    return content.reshape(shape, order=order)


def scalar(_: Decoder, dtype: str, content: bytes) -> Any:
    """A NumPy scalar."""
    [number] = np.frombuffer(content, np.dtype(str(dtype)))  # refuses objects
    return number


def tensor(
    decoder: Decoder,
    block: int,
    device: str,
    dtype: str,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    offset: int,
    requires_grad: bool,
) -> Tensor:
    """A tensor, which shares its memory with the same tensors as before; torch checks that it lies within."""
    memory = decoder.block(block, device).view(DTYPES[dtype])
    return memory.as_strided(size, stride, offset).requires_grad_(bool(requires_grad))


def generator(_: Decoder, state: Any, entropy: Any, spawn_key: Any, spawned: int) -> np.random.Generator:
    """A random stream in its state."""
    seed = np.random.SeedSequence(entropy, spawn_key=spawn_key, n_children_spawned=spawned)
    bits = np.random.PCG64(seed)
    bits.state = state
    return np.random.Generator(bits)


CONSTRUCTORS: Mapping[str, Callable[..., object]] = {
    each.__name__: each
    for each in (instance, kind, method, partial, queue, ordered, counter, default, array, scalar, tensor, generator)
}
