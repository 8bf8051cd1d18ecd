"""The registry of kinds of the four choices, and of named systems. Files register their own content."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from dlion_sim.protocol.choices import Batching, Choice, Exchange, KnowledgeTransfer, Synchronization
from dlion_sim.scenario.system import AllToAll, AnyTopology

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
    """A named system: its source, and its four choices, each a kind and parameters other than its defaults."""

    source: str
    batching: Mapping[str, Any] = field(default_factory=lambda: {"kind": "fixed"})
    exchange: Mapping[str, Any] = field(default_factory=lambda: {"kind": "full"})
    synchronization: Mapping[str, Any] = field(default_factory=lambda: {"kind": "synchronous"})
    knowledge_transfer: Mapping[str, Any] = field(default_factory=lambda: {"kind": "none"})
    topology: AnyTopology = field(default_factory=AllToAll)

    @property
    def choices(self) -> Mapping[str, Mapping[str, Any]]:
        return {category: getattr(self, category) for category in CATEGORIES}


SYSTEMS: dict[str, Composition] = {}
"""By name."""
