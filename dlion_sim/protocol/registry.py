"""What a scenario may choose from: kinds of the four choices, and named systems. What is in a file registers itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, TypeVar

from dlion_sim.protocol.choices import Batching, Choice, Exchange, KnowledgeTransfer, Synchronization
from dlion_sim.scenario.topology import AllToAll, AnyTopology

C = TypeVar("C", bound=type[Choice])
CATEGORIES: dict[str, type[Choice]] = {
    "batching": Batching,
    "exchange": Exchange,
    "synchronization": Synchronization,
    "knowledge_transfer": KnowledgeTransfer,
}
REGISTRY: dict[str, dict[str, type[Choice]]] = {category: {} for category in CATEGORIES}


def register(category: str, kind: str) -> Callable[[C], C]:
    """Make a choice selectable in a scenario as `category: kind`."""

    def add(choice: C) -> C:
        REGISTRY[category][kind] = choice
        return choice

    return add


@dataclass(frozen=True)
class Composition:
    """A system: where it is from, and its four choices, each its kind and what differs from that kind's defaults."""

    source: str
    batching: Mapping[str, Any]
    exchange: Mapping[str, Any]
    synchronization: Mapping[str, Any]
    knowledge_transfer: Mapping[str, Any]
    topology: AnyTopology = field(default_factory=AllToAll)

    @property
    def choices(self) -> Mapping[str, Mapping[str, Any]]:
        """The four by category."""
        return {category: getattr(self, category) for category in CATEGORIES}

    def variant(self, source: str, **choices: Mapping[str, Any]) -> Composition:
        """The same with some other choices."""
        return replace(self, source=source, **choices)  # type: ignore[arg-type]


SYSTEMS: dict[str, Composition] = {}
"""By name."""


def discover(package: ModuleType) -> None:
    """Import every file of a package, so that what is in it is registered."""
    for module in iter_modules(package.__path__, f"{package.__name__}."):
        import_module(module.name)
