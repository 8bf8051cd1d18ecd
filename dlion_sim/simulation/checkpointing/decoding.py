"""Reading a state that `encoding` wrote: an own interpreter of pickle's opcodes, since Python's runs what it is told.

It knows the opcodes of plain data. Nothing is looked up by name but the functions of `makers`, and nothing else is
called: they make arrays, tensors, collections, and instances of the classes that `kinds` lists, whose constructors do
not run. The only code of a class that does is its `__setstate__` and, once all is there, its `check_restored`: what
compiled code will be led by must not lead out of its arrays.
"""

from __future__ import annotations

import functools
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from pickletools import genops
from sys import intern
from typing import Any

from torch import Tensor

from dlion_sim.simulation.checkpointing import makers
from dlion_sim.simulation.checkpointing.kinds import Kinds, UnknownKindError
from dlion_sim.simulation.checkpointing.makers import Material


class Decoder:
    """Makes of what `encoding` wrote the state that it was. `blocks` are what arrays and tensors consist of: uint8 [n].

    Raises an exception of any kind, with nothing done, for what `encoding` never writes.
    """

    def __init__(self, kinds: Kinds, blocks: Sequence[Tensor]) -> None:
        self._kinds = kinds
        self._material = Material(kinds, blocks)
        self._stack: list[Any] = []
        self._outer: list[list[Any]] = []
        """The stacks below the marks."""
        self._checked: list[Any] = []
        """What is to be looked at in the end, as no part of it changes any more then."""
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
        for made in self._checked:
            made.check_restored()
        return state

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
        if module != makers.__name__ or name not in makers.MAKERS:
            raise UnknownKindError(f"it asks for {module}.{name}")
        self._stack.append(makers.MAKERS[name])

    def _make(self) -> None:
        arguments, maker = self._stack.pop(), self._stack.pop()
        if not isinstance(maker, Hashable) or maker not in _MAKERS:
            raise UnknownKindError(f"it calls a {type(maker).__name__}")
        made = maker(self._material, *arguments)
        if maker is makers.instance and hasattr(made, "check_restored"):
            self._checked.append(made)
        self._stack.append(made)

    def _set_state(self) -> None:
        state, instance = self._stack.pop(), self._stack[-1]
        kind = type(instance)
        if self._kinds.is_by_value(kind):
            raise UnknownKindError(f"it changes a {self._kinds.name(kind)}")
        self._kinds.name(kind)
        if hasattr(kind, "__setstate__"):
            self._kinds.check_attributes(kind, state if isinstance(state, dict) else ())
            kind.__setstate__(instance, state)
            return
        attributes, slots = state if isinstance(state, tuple) else (state, None)
        names = [*(attributes or ()), *(slots or ())]
        self._kinds.check_attributes(kind, names)
        if any(name.startswith("__") for name in names):
            raise UnknownKindError(f"it gives names of Python's own to a {self._kinds.name(kind)}")
        if attributes:
            vars(instance).update({intern(name): value for name, value in attributes.items()})
        for name, value in (slots or {}).items():
            object.__setattr__(instance, name, value)


_MAKERS = frozenset(makers.MAKERS.values())
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
