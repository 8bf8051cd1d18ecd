"""From a scenario's `system` to four choices, with a check that they work together."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from dlion_sim.errors import InputError, did_you_mean
from dlion_sim.own_code import is_reference, referenced
from dlion_sim.protocol.choices import Choice, ChoiceParameters, Choices, Exchange, Setup
from dlion_sim.protocol.exchange.parameters import ParameterExchange
from dlion_sim.protocol.messages import Body
from dlion_sim.protocol.registry import CATEGORIES, REGISTRY
from dlion_sim.protocol.synchronization.policies import Synchronous
from dlion_sim.protocol.systems import SYSTEMS, Composition
from dlion_sim.protocol.topology import is_complete
from dlion_sim.protocol.worker import Worker
from dlion_sim.scenario import ChoiceSpec, SystemSpec
from dlion_sim.scenario.faults import as_input_error
from dlion_sim.scenario.model import Model
from dlion_sim.scenario.system import AnyTopology, ParameterServers

_PACKAGE = __name__.partition(".")[0]
_LETTERS = 40
"""The most letters of a replaced value; longer ones are cut off."""
_UNKNOWN = re.compile(r"unknown key '(\w+)'")


@dataclass(frozen=True)
class ResolvedChoice:
    """A choice with its validated parameters."""

    category: str
    kind: str
    implementation: type[Choice]
    parameters: ChoiceParameters

    def create(self, setup: Setup) -> Any:
        """The choice of one worker. Raises InputError if its parameters do not fit the run."""
        try:
            return self.implementation(self.parameters, setup)
        except InputError as error:
            raise error.below(f"system.{self.category}") from None


@dataclass(frozen=True)
class System:
    """A named composition, complete: `choices` by category."""

    name: str
    choices: Mapping[str, ResolvedChoice]
    topology: AnyTopology
    replaced: Mapping[str, str]
    """Differences from the composition of that name, by path: e.g. {"exchange": "full", "batching.weights": "share"}.

    Parameters are included if they differ from the composition's or, for a replaced kind, from its defaults."""

    def worker(self, setup: Setup) -> Worker:
        """A worker of this system. Raises InputError if the system does not fit the run."""
        return Worker(setup, Choices(**{category: choice.create(setup) for category, choice in self.choices.items()}))

    @property
    def evaluates_server(self) -> bool:
        """Whether its server's parameters are evaluated, in place of the workers'."""
        exchange = self.choices["exchange"].implementation
        return issubclass(exchange, Exchange) and exchange.evaluates_server

    @property
    def own_modules(self) -> frozenset[str]:
        kinds = [kind for choice in self.choices.values() for kind in (choice.implementation, type(choice.parameters))]
        return frozenset(kind.__module__ for kind in kinds if kind.__module__.partition(".")[0] != _PACKAGE)

    @property
    def spec(self) -> SystemSpec:
        return SystemSpec(
            name=self.name,
            topology=self.topology,
            **{
                category: ChoiceSpec(kind=choice.kind, parameters=choice.parameters.model_dump(mode="json"))
                for category, choice in self.choices.items()
            },
        )


def compose(spec: SystemSpec, modules: str | None = None) -> System:
    """The system that `spec` means: the named one, with the choices and parameters that it overrides.

    A name or kind may also be a reference to the user's own, `package.module:Name`, in the folder `modules` or wherever
    Python finds it. Raises InputError, with the path inside the scenario, for an unknown name, kind or parameter, and
    for choices that cannot work together.
    """
    composition = _named(spec.name, modules)
    choices = {
        category: _resolve(category, default, getattr(spec, category), modules)
        for category, default in composition.choices.items()
    }
    topology = spec.topology or composition.topology
    _check_together(choices, topology)
    plain = {category: _plain(category, default, modules) for category, default in composition.choices.items()}
    return System(spec.name, choices, topology, dict(_replaced(composition.topology, plain, choices, topology)))


_Settings = tuple[str, Model | None]
"""A kind and its settings; None if it has some without a default, which a scenario is to give."""


def _plain(category: str, default: Mapping[str, Any], modules: str | None) -> _Settings:
    try:
        return default["kind"], _resolve(category, default, None, modules).parameters
    except InputError:
        return default["kind"], None


def _replaced(
    plain_topology: AnyTopology,
    plain: Mapping[str, _Settings],
    choices: Mapping[str, ResolvedChoice],
    topology: AnyTopology,
) -> Iterator[tuple[str, str]]:
    for category, choice in choices.items():
        yield from _differing(category, plain[category], (choice.kind, choice.parameters))
    yield from _differing("topology", (plain_topology.kind, plain_topology), (topology.kind, topology))


def _differing(path: str, plain: _Settings, chosen: tuple[str, Model]) -> Iterator[tuple[str, str]]:
    """Differences of a kind and its settings from the plain ones, by path."""
    (plain_kind, plain_settings), (kind, settings) = plain, chosen
    if kind != plain_kind:
        yield path, kind
    if kind == plain_kind and plain_settings is not None:
        differing = [key for key, value in settings if value != getattr(plain_settings, key)]
    else:
        differing = [*settings.model_dump(exclude_defaults=True)]
    stated = settings.model_dump(mode="json", exclude_none=True)
    for key in differing:
        value = stated.get(key)
        text = value if isinstance(value, str) else json.dumps(value).replace('"', "").removesuffix(".0")
        yield f"{path}.{key}", text if len(text) <= _LETTERS else f"{text[: _LETTERS - 3]}..."


def _check_together(choices: Mapping[str, ResolvedChoice], topology: AnyTopology) -> None:
    """Refuse choices that cannot work together."""
    exchange_kind, synchronization_kind = (
        choices[category].implementation for category in ("exchange", "synchronization")
    )
    if synchronization_kind.waits_for_peers and not exchange_kind.sends_every_iteration:  # type: ignore[attr-defined]
        raise InputError(
            f"'{choices['synchronization'].kind}' waits for messages of each peer's every iteration, which "
            f"'{choices['exchange'].kind}' does not send",
            path="system.synchronization",
            allowed="asynchronous, or an exchange that sends to all peers in every iteration",
        )
    mixed = choices["exchange"].parameters
    lag = synchronization_kind.lag(choices["synchronization"].parameters)  # type: ignore[attr-defined]
    if isinstance(mixed, ParameterExchange.Parameters) and lag not in (None, mixed.staleness):
        raise InputError(
            f"parameters may be {mixed.staleness} iterations old, but the synchronization "
            f"'{choices['synchronization'].kind}' lets a peer be {lag} behind",
            path="system.exchange.staleness",
            allowed=f"{lag}, or another synchronization",
        )
    if exchange_kind.needs_servers != isinstance(topology, ParameterServers):  # type: ignore[attr-defined]
        served = [kind for kind, exchange in REGISTRY["exchange"].items() if exchange.needs_servers]  # type: ignore[attr-defined]
        raise InputError(
            f"the exchange '{choices['exchange'].kind}' and the topology '{topology.kind}' do not go together",
            path="system.topology",
            allowed=f"parameter_server with the exchange {' or '.join(served)}, and only with those",
        )
    if exchange_kind.evaluates_server and isinstance(topology, ParameterServers) and len(topology.hosts) > 1:  # type: ignore[attr-defined]
        raise InputError(
            f"the exchange '{choices['exchange'].kind}' has one server, not {len(topology.hosts)}",
            path="system.topology.hosts",
            allowed="one host",
        )
    setting = exchange_kind.needs_lockstep(mixed)  # type: ignore[attr-defined]
    if setting and not (issubclass(synchronization_kind, Synchronous) and is_complete(topology)):
        is_exchange = setting.startswith("exchange:")  # whatever its parameters
        instead = "another exchange" if is_exchange else "route: all_to_all and precision: fp32"
        raise InputError(
            f"'{setting}' needs all workers to be in step and each other's peers, but the synchronization is "
            f"'{choices['synchronization'].kind}' and the topology '{topology.kind}'",
            path="system.exchange",
            allowed=f"synchronization: synchronous and topology: all_to_all; or {instead}",
        )
    receivers: dict[type[Body], str] = {}
    for category, choice in choices.items():
        for body in choice.implementation.receives:
            if body in receivers:
                raise InputError(
                    f"'{choice.kind}' receives {body.__name__} messages, which are {receivers[body]}'s",
                    path=f"system.{category}",
                    allowed="one receiver of each kind of message",
                )
            receivers[body] = category
        if choice.implementation.needs_everyone and not is_complete(topology):
            raise InputError(
                f"'{choice.kind}' needs every worker to hear from all others, which a {topology.kind} does not let it",
                path=f"system.{category}",
                allowed="another choice, or the topology all_to_all",
            )


def _named(name: str, modules: str | None) -> Composition:
    if is_reference(name):
        found = referenced(name, "system.name", modules)
        if not isinstance(found, Composition):
            raise InputError(f"'{name}' is no Composition", path="system.name")
        return found
    if name not in SYSTEMS:
        raise InputError(
            f"unknown system '{name}'{did_you_mean(name, SYSTEMS)}",
            path="system.name",
            allowed=f"{', '.join(sorted(SYSTEMS))}, or package.module:NAME",
        )
    return SYSTEMS[name]


def _resolve(
    category: str, default: Mapping[str, Any], override: ChoiceSpec | None, modules: str | None
) -> ResolvedChoice:
    """The default choice with the override's parameters, or another choice."""
    given = override or ChoiceSpec()
    kind = given.kind or default["kind"]
    path = f"system.{category}"
    inherited = {key: value for key, value in default.items() if key != "kind"} if kind == default["kind"] else {}
    implementation = _implementation(category, kind, path, modules)
    try:
        parameters = implementation.Parameters.model_validate({**inherited, **given.parameters})
    except ValidationError as error:
        raise as_input_error(error, given.parameters, None).below(path) from None
    return ResolvedChoice(category, kind, implementation, parameters)


def _implementation(category: str, kind: str, path: str, modules: str | None) -> type[Choice]:
    kinds = REGISTRY[category]
    if is_reference(kind):
        found = referenced(kind, path, modules)
        if not (isinstance(found, type) and issubclass(found, CATEGORIES[category])):
            raise InputError(f"'{kind}' is no subclass of {CATEGORIES[category].__name__}", path=path)
        return found
    if kind not in kinds:
        raise InputError(
            f"unknown {category} choice '{kind}'{did_you_mean(kind, kinds)}",
            path=path,
            allowed=f"{', '.join(sorted(kinds))}, or package.module:Class",
        )
    return kinds[kind]


def with_choices(error: InputError) -> InputError:
    """The same error; for a misplaced key of a choice, it names the choices that have such a key."""
    unknown = _UNKNOWN.match(error.problem)
    if unknown is None or "system" not in (error.path or "").split("."):
        return error
    found = [
        f"system.{category}.{unknown[1]} ({', '.join(kinds)})"
        for category, choices in REGISTRY.items()
        if (kinds := [kind for kind, choice in choices.items() if unknown[1] in choice.Parameters.model_fields])
    ]
    if not found:
        return error
    problem = f"{error.problem}; there is {', '.join(found)}"
    return InputError(problem, file=error.file, path=error.path, allowed=error.allowed, further=error.further)
