"""The named systems, each a composition of four choices, and how a scenario's `system` becomes one."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from dlion_sim.errors import InputError

# Importing a folder of choices registers them.
from dlion_sim.protocol import batching, exchange, knowledge, synchronization  # noqa: F401
from dlion_sim.protocol.choices import REGISTRY, Choice, ChoiceParameters, Setup
from dlion_sim.protocol.worker import Choices, Worker
from dlion_sim.scenario import ChoiceSpec, SystemSpec
from dlion_sim.scenario.complaints import as_input_error

SYSTEMS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    # Whole gradients to everyone, in step.
    "baseline": {
        "batching": {"kind": "fixed"},
        "exchange": {"kind": "full"},
        "synchronization": {"kind": "synchronous"},
        "knowledge_transfer": {"kind": "none"},
    },
    # Watcharapichat et al., SoCC'16.
    "ako": {
        "batching": {"kind": "fixed"},
        "exchange": {"kind": "partitions"},
        "synchronization": {"kind": "asynchronous"},
        "knowledge_transfer": {"kind": "none"},
    },
    # Hsieh et al., NSDI'17: sparse in data, synchronous in clocks (a staleness bound of 0).
    "gaia": {
        "batching": {"kind": "fixed"},
        "exchange": {"kind": "significance"},
        "synchronization": {"kind": "bounded_staleness", "staleness": 0},
        "knowledge_transfer": {"kind": "none"},
    },
    # Luo et al., ASPLOS'19, exchanging gradients as in DLion's comparison.
    "hop": {
        "batching": {"kind": "fixed"},
        "exchange": {"kind": "full"},
        "synchronization": {"kind": "hop"},
        "knowledge_transfer": {"kind": "none"},
    },
    # Hong & Chandra, HPDC'21. Which synchronization its results used is not known; a bound of 5 works everywhere.
    "dlion": {
        "batching": {"kind": "weighted_dynamic"},
        "exchange": {"kind": "max_n"},
        "synchronization": {"kind": "bounded_staleness", "staleness": 5},
        "knowledge_transfer": {"kind": "direct"},
    },
}


@dataclass(frozen=True)
class ResolvedChoice:
    """A registered choice with its validated parameters."""

    kind: str
    implementation: type[Choice]
    parameters: ChoiceParameters

    def create(self, setup: Setup) -> Any:
        """The choice of one worker."""
        return self.implementation(self.parameters, setup)


@dataclass(frozen=True)
class System:
    """A named composition, complete: `choices` by category."""

    name: str
    choices: Mapping[str, ResolvedChoice]

    def worker(self, setup: Setup) -> Worker:
        """A worker of this system."""
        return Worker(setup, Choices(**{category: choice.create(setup) for category, choice in self.choices.items()}))

    @property
    def spec(self) -> SystemSpec:
        """The specification that says all of it, every default included."""
        return SystemSpec(
            name=self.name,
            **{
                category: ChoiceSpec(kind=choice.kind, parameters=choice.parameters.model_dump(mode="json"))
                for category, choice in self.choices.items()
            },
        )


def compose(spec: SystemSpec) -> System:
    """The system that `spec` means: the named one, with the choices and parameters that it overrides.

    Raises InputError, with the path inside the scenario, for an unknown name, kind or parameter.
    """
    if spec.name not in SYSTEMS:
        raise _unknown("system", spec.name, "system.name", SYSTEMS)
    return System(
        spec.name,
        {
            category: _resolve(category, default, getattr(spec, category))
            for category, default in SYSTEMS[spec.name].items()
        },
    )


def _resolve(category: str, default: Mapping[str, Any], override: ChoiceSpec | None) -> ResolvedChoice:
    """The default choice, with the override's parameters in place of its own; or another choice altogether."""
    given = override or ChoiceSpec()
    kind = given.kind or default["kind"]
    path = f"system.{category}"
    if kind not in REGISTRY[category]:
        raise _unknown(f"{category} choice", kind, path, REGISTRY[category])
    inherited = {key: value for key, value in default.items() if key != "kind"} if kind == default["kind"] else {}
    implementation = REGISTRY[category][kind]
    try:
        parameters = implementation.Parameters.model_validate({**inherited, **given.parameters})
    except ValidationError as error:
        raise as_input_error(error, given.parameters, None).below(path) from None
    return ResolvedChoice(kind, implementation, parameters)


def _unknown(what: str, name: str, path: str, known: Mapping[str, Any]) -> InputError:
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    return InputError(f"unknown {what} '{name}'{hint}", path=path, allowed=", ".join(sorted(known)))
