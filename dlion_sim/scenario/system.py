"""Which training system runs: a named composition of four choices, any of which may be replaced."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field, model_serializer

from dlion_sim.scenario.model import ShortForm
from dlion_sim.scenario.topology import Topology


class ChoiceSpec(ShortForm):
    """One of a system's choices. Written as its kind, or as a mapping of `kind` and the kind's own parameters."""

    short_form: ClassVar[dict[str, Any]] = {"type": ["string", "object"], "properties": {"kind": {"type": "string"}}}

    kind: str | None = None
    """Name of the choice; by default the system's own, with other parameters."""
    parameters: dict[str, Any] = Field(default_factory=dict)
    """What the choice is set to; which names it knows is the choice's matter."""

    @classmethod
    def expand(cls, given: object) -> object:
        """A mapping of fields from a kind, or from a mapping that holds the parameters beside the kind."""
        if isinstance(given, str):
            return {"kind": given}
        if not isinstance(given, Mapping) or (set(given) <= {"kind", "parameters"} and "parameters" in given):
            return given
        return {"kind": given.get("kind"), "parameters": {key: given[key] for key in given if key != "kind"}}

    @model_serializer
    def _write(self) -> str | dict[str, Any]:
        if self.kind is None:
            return self.parameters
        return {"kind": self.kind, **self.parameters} if self.parameters else self.kind


class SystemSpec(ShortForm):
    """A training system; its plain name is short for {name: ...}."""

    name: str
    """Name of the composition, e.g. dlion, baseline, ako, gaia or hop."""
    batching: ChoiceSpec | None = None
    """How many samples a worker takes at a time. By default, here and below, it is the system's own choice."""
    exchange: ChoiceSpec | None = None
    """What goes to whom."""
    synchronization: ChoiceSpec | None = None
    """When a worker goes on."""
    knowledge_transfer: ChoiceSpec | None = None
    """Whose weights are merged."""
    topology: Topology | None = None
    """Who exchanges with whom; a plain name is short for {kind: name}."""

    @classmethod
    def expand(cls, given: object) -> object:
        """A mapping of fields from a name."""
        return {"name": given} if isinstance(given, str) else given
