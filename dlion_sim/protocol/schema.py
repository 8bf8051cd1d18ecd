"""The JSON Schema of scenarios, with all systems and choices."""

from __future__ import annotations

from typing import Any

from dlion_sim.protocol.choices import Choice
from dlion_sim.protocol.registry import REGISTRY
from dlion_sim.protocol.systems import SYSTEMS
from dlion_sim.scenario import Scenario

OWN = {"type": "string", "pattern": "^[^:]+:[^:]+$", "description": "The user's own, package.module:Name."}


def scenario_schema() -> dict[str, Any]:
    """The schema of `Scenario`, with the names of systems, and each choice's kinds and parameters."""
    schema = Scenario.model_json_schema()
    names = {"anyOf": [{"enum": sorted(SYSTEMS)}, OWN], "description": "A named composition of the four choices."}
    choices = {category: {"anyOf": _kinds(kinds)} for category, kinds in REGISTRY.items()}
    topology = Scenario.model_json_schema()["$defs"]["SystemSpec"]["anyOf"][1]["properties"]["topology"]
    schema["$defs"]["SystemSpec"] = {
        "anyOf": [
            names,
            {
                "type": "object",
                "properties": {"name": names, **choices, "topology": topology},
                "required": ["name"],
                "additionalProperties": False,
            },
        ]
    }
    del schema["$defs"]["ChoiceSpec"]
    return schema


def _kinds(kinds: dict[str, type[Choice]]) -> list[dict[str, Any]]:
    """A kind's name, or a mapping with the parameters of one, whose name may be omitted."""
    mappings = []
    for kind, choice in sorted(kinds.items()):
        parameters = choice.Parameters.model_json_schema()
        mapping = {
            "type": "object",
            "description": (choice.__doc__ or "").strip(),
            "properties": {"kind": {"const": kind}, **parameters.get("properties", {})},
            "additionalProperties": False,
        }
        mappings.append(mapping)
    own = {"type": "object", "properties": {"kind": OWN}, "required": ["kind"]}
    return [{"enum": sorted(kinds)}, OWN, *mappings, own]
