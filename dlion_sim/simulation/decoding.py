"""Reading a state that `encoding` wrote: an own interpreter of pickle's opcodes, since Python's runs what it is told.

It knows the opcodes of plain data. Nothing is looked up by name but the few functions here, and nothing else is called;
what they make are arrays, tensors, collections and instances of the classes that `kinds` lists, made without running
their constructors. The only code of a class that runs is its `__setstate__`.
"""

from __future__ import annotations

import functools
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from pickletools import genops
from sys import intern
from types import MethodType
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dlion_sim.simulation.kinds import Kinds, UnknownKindError

FACTORIES: dict[str, Callable[[], object]] = {
    each.__name__: each for each in (bool, int, float, str, tuple, list, set, dict, deque)
}
"""What a defaultdict may make."""
_FLOATS = torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128
_INTEGERS = torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64
DTYPES = {str(dtype): dtype for dtype in (*_FLOATS, *_INTEGERS)}


class Decoder:
    """Makes of what `encoding` wrote the state that it was. `blocks` are what arrays and tensors consist of: uint8 [n].

    Raises an exception of any kind, with nothing done, for what `encoding` never writes.
    """

    def __init__(self, kinds: Kinds, blocks: Sequence[Tensor]) -> None:
        self.kinds = kinds
        self._blocks = list(blocks)
        self._stack: list[Any] = []
        self._outer: list[list[Any]] = []
        """The stacks below the marks."""
        self._memo: list[Any] = []
        self._steps: dict[str, Callable[[Any], None]] = {
            **dict.fromkeys(("PROTO", "FRAME", "STOP"), lambda _: None),
            **dict.fromkeys(_VALUES, self._push),
            **{opcode: functools.partial(self._push_new, make) for opcode, make in _CONSTANTS.items()},
            **{f"TUPLE{length}": functools.partial(self._tuple_of, length) for length in (1, 2, 3)},
            "TUPLE": lambda _: self._push(tuple(self._since_mark())),
            "FROZENSET": lambda _: self._push(frozenset(self._since_mark())),
            "MARK": lambda _: self._mark(),
            "MEMOIZE": lambda _: self._memo.append(self._stack[-1]),
            **dict.fromkeys(("BINGET", "LONG_BINGET"), lambda number: self._push(self._memo[number])),
            "APPEND": lambda _: self._extend([self._stack.pop()]),
            "APPENDS": lambda _: self._extend(self._since_mark()),
            "SETITEM": lambda _: self._set_items([self._stack.pop(-2), self._stack.pop()]),
            "SETITEMS": lambda _: self._set_items(self._since_mark()),
            "ADDITEMS": lambda _: self._add_items(self._since_mark()),
            "STACK_GLOBAL": lambda _: self._maker(),
            "REDUCE": lambda _: self._make(),
            "BUILD": lambda _: self._set_state(),
        }

    def decode(self, data: bytes) -> Any:
        """The state that was encoded as `data`."""
        for opcode, argument, _ in genops(data):
            step = self._steps.get(opcode.name)
            if step is None:
                raise ValueError(f"it has an opcode {opcode.name}")
            step(argument)
        [state] = self._stack
        return state

    def block(self, number: int, device: str) -> Tensor:
        """What an array or tensor consists of, on its device."""
        if torch.device(device).type not in ("cpu", "cuda"):
            raise ValueError(f"it has a tensor on {device}")
        if self._blocks[number].device != torch.device(device):
            self._blocks[number] = self._blocks[number].to(device)
        return self._blocks[number]

    def _push(self, value: object) -> None:
        self._stack.append(value)

    def _push_new(self, make: Callable[[], object], _: None) -> None:
        self._stack.append(make())

    def _tuple_of(self, length: int, _: None) -> None:
        self._stack[-length:] = [tuple(self._stack[-length:])]

    def _mark(self) -> None:
        self._outer.append(self._stack)
        self._stack = []

    def _since_mark(self) -> list[Any]:
        since, self._stack = self._stack, self._outer.pop()
        return since

    def _extend(self, items: list[Any]) -> None:
        _of_type(self._stack[-1], list, deque).extend(items)

    def _set_items(self, items: list[Any]) -> None:
        mapping = _of_type(self._stack[-1], dict, OrderedDict, Counter, defaultdict)
        for key, value in zip(items[::2], items[1::2], strict=True):
            mapping[key] = value

    def _add_items(self, items: list[Any]) -> None:
        _of_type(self._stack[-1], set).update(items)

    def _maker(self) -> None:
        name, module = self._stack.pop(), self._stack.pop()
        if module != __name__ or name not in MAKERS:
            raise UnknownKindError(f"it asks for {module}.{name}")
        self._stack.append(MAKERS[name])

    def _make(self) -> None:
        arguments, maker = self._stack.pop(), self._stack.pop()
        if not isinstance(maker, Hashable) or maker not in _MAKERS:
            raise UnknownKindError(f"it calls a {type(maker).__name__}")
        self._stack.append(maker(self, *arguments))

    def _set_state(self) -> None:
        state, instance = self._stack.pop(), self._stack[-1]
        kind = type(instance)
        if self.kinds.is_by_value(kind):
            raise UnknownKindError(f"it changes a {self.kinds.name(kind)}")
        self.kinds.name(kind)
        if hasattr(kind, "__setstate__"):
            self.kinds.check_attributes(kind, state if isinstance(state, dict) else ())
            kind.__setstate__(instance, state)
            return
        attributes, slots = state if isinstance(state, tuple) else (state, None)
        names = [*(attributes or ()), *(slots or ())]
        self.kinds.check_attributes(kind, names)
        if any(name.startswith("__") for name in names):
            raise UnknownKindError(f"it gives names of Python's own to a {self.kinds.name(kind)}")
        if attributes:
            vars(instance).update({intern(name): value for name, value in attributes.items()})
        for name, value in (slots or {}).items():
            object.__setattr__(instance, name, value)


_VALUES = (
    *("BININT", "BININT1", "BININT2", "LONG1", "LONG4", "BINFLOAT"),
    *("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "SHORT_BINBYTES", "BINBYTES", "BINBYTES8", "BYTEARRAY8"),
)
_CONSTANTS: Mapping[str, Callable[[], object]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_TUPLE": tuple,
    "EMPTY_LIST": list,
    "EMPTY_DICT": dict,
    "EMPTY_SET": set,
}


def _of_type(value: Any, *types: type) -> Any:
    if type(value) not in types:
        raise UnknownKindError(f"it fills a {type(value).__name__}")
    return value


# What `encoding` names: each takes the decoder, and what is written down of the object.


def instance(decoder: Decoder, name: str, *arguments: object) -> object:
    """One of a listed class, without its state."""
    kind = decoder.kinds.named(name)
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
    """An empty one."""
    return OrderedDict()


def counter(_: Decoder) -> Counter[Any]:
    """An empty one."""
    return Counter()


def default(_: Decoder, factory: str | None) -> defaultdict[Any, Any]:
    """An empty defaultdict."""
    return defaultdict(None if factory is None else FACTORIES[factory])


def array(decoder: Decoder, block: int, dtype: Any, shape: tuple[int, ...], order: Any) -> npt.NDArray[Any]:
    """An array, in its own memory."""
    described = np.lib.format.descr_to_dtype(dtype)
    content: npt.NDArray[Any] = np.frombuffer(decoder.block(block, "cpu").numpy(), described)  # refuses objects
    return content.reshape(shape, order=order)


def scalar(_: Decoder, dtype: str, content: bytes) -> Any:
    """A number of numpy's."""
    [number] = np.frombuffer(content, np.lib.format.descr_to_dtype(dtype))  # refuses objects
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
    """A tensor, in the memory that it shares with those that it shared it with; torch checks that it lies within."""
    return (
        decoder.block(block, device)
        .view(DTYPES[dtype])
        .as_strided(size, stride, offset)
        .requires_grad_(bool(requires_grad))
    )


def generator(_: Decoder, state: Any, entropy: Any, spawn_key: Any, spawned: int) -> np.random.Generator:
    """A random stream where it was."""
    seed = np.random.SeedSequence(entropy, spawn_key=spawn_key, n_children_spawned=spawned)
    bits = np.random.PCG64(seed)
    bits.state = state
    return np.random.Generator(bits)


MAKERS: Mapping[str, Callable[..., object]] = {
    maker.__name__: maker
    for maker in (instance, kind, method, partial, queue, ordered, counter, default, array, scalar, tensor, generator)
}
_MAKERS = frozenset(MAKERS.values())
