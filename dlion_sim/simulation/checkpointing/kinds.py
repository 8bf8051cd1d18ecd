"""The classes that a checkpoint may hold, which are nothing but state, and the methods that may be scheduled."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Collection, Iterable
from enum import Enum
from importlib import import_module
from types import FunctionType, MethodType
from typing import Any

import msgspec

_PACKAGE = __name__.partition(".")[0]
_PACKAGES = tuple(f"{_PACKAGE}.{each}." for each in ("protocol", "bounded_loss", "simulation.packets"))
"""All their classes are without I/O."""
_MODULES = frozenset(
    f"{_PACKAGE}.{package}.{module}"
    for package, modules in {
        "assembly": "arrivals compute optional_totals outages recording totals transfer",
        "learning": "batches flat gradients optimizer replica",
        "scenario": "machines network schedule transport workload",
        "simulation": "carrier churn computing delivery engine evaluations event_queue flows messaging queued "
        "routing sharing tcp",
    }.items()
    for module in modules.split()
)
"""All their classes are state, or without effect when nothing was constructed."""
_METHODS = frozenset(
    f"{owner}.{method}"
    for owner, methods in {
        "Engine": "_evaluate_regularly _handle _incarnation _on_membership_event _on_process_ended "
        "_on_process_started _report_capacities _sample_regularly",
        "Messaging": "_hand_over changed cut delivered timed",
        "Computing": "_on_gradient _on_profile",
        "Transport": "_arrive _begin _end _enqueue_delayed _leave _routes",
        "PacketDelivery": "_advance _deliver_locally _report _request_advance _resize",
        "FlowNetwork": "_end _settle resize",
        "Churn": "_complete_handshake _crash _detect_failure _interrupt_path _leave _notify _restore_path "
        "_start_process _time_out",
        "CapacityChanges": "_apply",
        "Connections": "_ended _next_round",
        "QueuedConnections": "_ended _join _review",
        "Recorder": "append",
        "Optimizer": "factor",
    }.items()
    for method in methods.split()
)
_CONTAINERS = (list, dict, set, frozenset, deque, bytearray)
"""A class must not be one of these, whose items would be lost."""


class UnknownKindError(ValueError):
    """An object, class or method that a checkpoint may not hold."""


class Kinds:
    """The classes of listed modules of this package, and of the user's own `modules`."""

    def __init__(self, modules: Collection[str] = ()) -> None:
        self._modules = modules

    def name(self, kind: type) -> str:
        """The name of a class. Raises UnknownKindError for one that a checkpoint may not hold."""
        if not (_is_ours(kind) or self._is_own(kind)):
            raise UnknownKindError(f"a {_name(kind)}")
        return _name(kind)

    def named(self, name: str) -> type:
        """The class of that name. Raises UnknownKindError if a checkpoint may not hold it."""
        module, _, path = name.partition(":")
        found: Any = None
        if module in self._modules:
            found = sys.modules[module]
        elif _is_listed(module):
            found = import_module(module)
        for part in path.split("."):
            found = vars(found).get(part) if found is not None else None
        if not (isinstance(found, type) and _name(found) == name and self.name(found)):
            raise UnknownKindError(f"a {name}")
        return found

    def is_by_value(self, kind: type) -> bool:
        """Whether its instances are made from their values and have no further state."""
        return issubclass(kind, Enum | msgspec.Struct)

    def check_attributes(self, kind: type, names: Iterable[str]) -> None:
        """Raise UnknownKindError for an attribute that would replace a method of an instance."""
        for name in names:
            if callable(getattr(kind, name, None)) and not self._is_own(kind):
                raise UnknownKindError(f"a {_name(kind)} with another {name}")

    def method(self, owner: object, name: str) -> MethodType:
        """A bound method. Raises UnknownKindError for one that may not be scheduled."""
        function = getattr(type(owner), name, None)
        if not isinstance(function, FunctionType) or not (
            self._is_own(type(owner)) or (_is_listed(function.__module__) and function.__qualname__ in _METHODS)
        ):
            raise UnknownKindError(f"the method {_name(type(owner))}.{name}")
        return MethodType(function, owner)

    def _is_own(self, kind: type) -> bool:
        return kind.__module__ in self._modules and not issubclass(kind, _CONTAINERS)


def _is_ours(kind: type) -> bool:
    return _is_listed(kind.__module__) and not issubclass(kind, _CONTAINERS)


def _is_listed(module: str) -> bool:
    return module in _MODULES or module.startswith(_PACKAGES)


def _name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"
