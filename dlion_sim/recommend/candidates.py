"""The candidates: machines, how many, in which clouds, with which system and key parameter."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dlion_sim.errors import InputError, did_you_mean
from dlion_sim.recommend.data_placement import data_are_local, local_partition
from dlion_sim.results import in_words
from dlion_sim.scenario import DURATION, Catalog, Scenario, WorkerGroup
from dlion_sim.scenario.faults import RuleError, listed
from dlion_sim.scenario.overrides import set_value
from dlion_sim.scenario.prices import machine_of
from dlion_sim.sweep import Base, Point, check_system
from dlion_sim.sweep.points import name_of

SYSTEMS = ("dlion", "dlion_sparse", "ring_allreduce", "local_sgd", "diloco")
"""Default systems beside the scenario's own. They differ in kind: gradients sized to each link, sparse gradients, ring
all-reduce, periodic averaging, and outer optimization."""
KEY_PARAMETERS: Mapping[str, tuple[str, tuple[Any, ...]]] = {
    "dlion": ("exchange.n_min", (0.85, 10)),
    "gaia": ("exchange.threshold", (0.01, 0.1)),
    "ako": ("exchange.first", ("spread", "same")),
    "local_sgd": ("exchange.period", (4, 16)),
    "diloco": ("exchange.period", (20, 100)),
}
"""Key parameter by system: a path below `system`, and the values to try."""


@dataclass(frozen=True)
class SystemVariant:
    """A system with the value of its key parameter."""

    labels: Mapping[str, str]
    """`system`, and the key parameter's value by path."""
    spec: dict[str, Any]
    """The system as in a scenario."""


def variants(own: Mapping[str, Any], names: Sequence[str]) -> Iterator[SystemVariant]:
    """The systems of these names with each value of their key parameters; the scenario's `own` keeps its parameters.

    Without names, the scenario's own and `SYSTEMS`.
    """
    for name in dict.fromkeys(names or (own["name"], *SYSTEMS)):
        spec = dict(own) if name == own["name"] else {"name": name}
        path, values = KEY_PARAMETERS.get(name, ("", ()))
        if not values or path.split(".")[0] in spec:
            yield SystemVariant({"system": name}, spec)
            continue
        for value in values:
            changed = copy.deepcopy(spec)
            set_value(changed, path.split("."), value)
            yield SystemVariant({"system": name, f"system.{path}": str(value)}, changed)


COUNTS = (1, 2, 4)
"""Default numbers of workers in each cloud."""
ALL = "all"
VALIDATION = 0.1
"""Default share of validation samples: a choice must not use the test set."""
ALONE = "alone"
"""The system label of a single worker."""
_ALONE = SystemVariant({"system": ALONE}, {"name": "baseline"})
RATES = (1.0, 0.25, 4.0)
"""Learning rates to try on own machines, relative to the scenario's; the most important first."""


@dataclass(frozen=True)
class Candidate:
    """Machines and a system that may be recommended."""

    name: str
    labels: Mapping[str, str]
    """Labels: `system`, and the path of a key parameter; of rented machines `instance`, `count` of workers per cloud
    and `clouds`, on the scenario's own `learning_rate`."""
    values: Mapping[str, Any]
    """Values to set in the scenario, by dotted path."""
    per_hour: float
    """Price of all its machines per hour; 0 without prices."""

    @property
    def is_own(self) -> bool:
        """Whether it uses the scenario's own machines."""
        return "instance" not in self.labels

    @property
    def system(self) -> str:
        """E.g. "diloco, period 20"."""
        settings = {path: value for path, value in self.labels.items() if path.startswith("system.")}
        return ", ".join([self.labels["system"], *(in_words(path, value) for path, value in settings.items())])

    @property
    def in_words(self) -> str:
        """E.g. "dlion on 2 p3.2xlarge in each of east, west"; on own machines "dlion, learning rate 0.2"."""
        if self.is_own:
            return f"{self.system}, {in_words('learning_rate', self.labels['learning_rate'])}"
        first, *others = [cloud["name"] for cloud in self.values["cluster.clouds"]]
        where = f"in each of {', '.join([first, *others])}" if others else f"in {first}"
        return f"{self.system} on {self.labels['count']} {self.labels['instance']} {where}"

    def point(self, base: Base, seed: int, longest: float = DURATION.most) -> Point:
        """Its run with a seed, which ends at the target, or after the `longest` virtual time (s)."""
        return Point(
            name=f"{self.name}-seed{seed}",
            base=base,
            labels={**self.labels, "seed": str(seed)},
            values={**self.values, "duration": DURATION.format(longest), "iterations": None, "seed": seed},
            sweep=base.file,
        )


@dataclass(frozen=True)
class Refused:
    """An instance or candidate that cannot be used."""

    name: str
    reason: str
    allowed: str | None = None


@dataclass(frozen=True)
class Choices:
    """The choices that form candidates; empty ones have defaults."""

    catalog: str | None
    """A shipped catalog, or a CSV file relative to the current folder; None: the scenario's own machines."""
    instances: Sequence[str] = ()
    counts: Sequence[int] = COUNTS
    systems: Sequence[str] = ()


def candidates(base: Base, scenario: Scenario, choices: Choices) -> tuple[list[Candidate], list[Refused]]:
    """All candidates of the scenario in `base`, and the refused ones.

    Raises InputError for an unreadable catalog, for unknown instances and systems, and if there is no candidate.
    """
    own = base.data["system"]
    own = {"name": own} if isinstance(own, str) else own
    for name in choices.systems:
        if name == own["name"]:
            continue  # With the scenario's parameters, without which it may be incomplete.
        try:
            check_system(name, scenario.modules or str(base.file.parent.absolute()))
        except InputError as error:
            raise InputError(error.problem, file="`systems`", allowed=error.allowed) from None
    if choices.catalog is None:
        single = len(scenario.cluster.workers) == 1
        return [*_on_own_machines(scenario, [_ALONE] if single else [*variants(own, choices.systems)])], []
    refused: list[Refused] = []
    catalog = _catalog(choices.catalog)
    tried = [*variants(own, choices.systems)]
    found = [
        _candidate(base, scenario, place, count, system)
        for place in _places(scenario, catalog, choices.instances, refused)
        for count in choices.counts
        for system in (tried if count * len(place.machines) > 1 else [_ALONE])
    ]
    clouds = scenario.cluster.clouds
    if not found and refused and all(cloud.region is None for cloud in clouds):
        raise _without_regions(catalog, clouds[0].name, base.file)
    if not found:
        reasons = "; ".join(f"{each.name}: {each.reason}" for each in refused)
        problem = f"no instance of {choices.catalog} can be had and simulated: {reasons}"
        raise InputError(problem, file=base.file, allowed=refused[0].allowed if refused else None)
    return found, refused


def _without_regions(catalog: Catalog, cloud: str, file: Path) -> InputError:
    regions = list(dict.fromkeys(catalog.rows["Region"]))
    problem = f"no cloud has a region of the catalog {catalog.name}, whose prices differ by region"
    example = f"{{name: {cloud}, region: {regions[0]}, workers: ...}}"
    allowed = f"a region in each, e.g. {example}, of {listed(regions)}; or `machines` own, for the scenario's own"
    return InputError(problem, file=file, path="cluster.clouds", allowed=allowed)


def held_out(scenario: Scenario) -> dict[str, Any]:
    """What makes it hold out validation samples, unless it does so already."""
    return {} if scenario.workload.validation else {"workload.validation": VALIDATION}


def _on_own_machines(scenario: Scenario, systems: Sequence[SystemVariant]) -> Iterator[Candidate]:
    """The systems with each learning rate; machines, network and data remain as they are."""
    per_hour = sum(group.count * (group.price or 0.0) for cloud in scenario.cluster.clouds for group in cloud.workers)
    for system in systems:
        for factor in RATES:
            rate = float(f"{factor * scenario.workload.optimizer.learning_rate:.6g}")
            labels = {**system.labels, "learning_rate": f"{rate:g}"}
            values = {"system": system.spec, "workload.optimizer.learning_rate": rate, **held_out(scenario)}
            yield Candidate(_name(labels), labels, values, per_hour)


@dataclass(frozen=True)
class _Place:
    """The clouds of a candidate, and its machines there."""

    instance: str
    name: str
    """A cloud's name, or `ALL`."""
    machines: Mapping[str, WorkerGroup]
    """By cloud."""


def _catalog(name: str) -> Catalog:
    try:
        return Catalog.read(name, Path())
    except RuleError as error:
        raise InputError(error.problem, file="`catalog`", allowed=error.allowed) from None


def _places(scenario: Scenario, catalog: Catalog, instances: Sequence[str], refused: list[Refused]) -> Iterator[_Place]:
    """Each instance in all clouds and, unless data are local, in its cheapest cloud; adds unavailable ones to
    `refused`."""
    spot = bool(scenario.prices and scenario.prices.spot)
    names = list(dict.fromkeys(catalog.rows["InstanceType"]))
    for name in dict.fromkeys(instances) or names:
        if name not in names:
            problem = f"catalog {catalog.name} has no instance '{name}'{did_you_mean(name, names)}"
            raise InputError(problem, file="`instances`", allowed=listed(names))
        machines: dict[str, WorkerGroup] = {}
        fault: Refused | None = None
        for cloud in scenario.cluster.clouds:
            try:
                machines[cloud.name] = machine_of(name, catalog, cloud.region, spot=spot)
            except RuleError as error:
                fault = fault or Refused(name, f"{error.problem} ({cloud.name})", error.allowed)
        if fault:
            refused.append(fault)
        elif len(machines) > 1:
            yield _Place(name, ALL, machines)
        if machines and (len(scenario.cluster.clouds) == 1 or not data_are_local(scenario)):
            cheapest = min(machines, key=lambda cloud: machines[cloud].price or 0.0)
            yield _Place(name, cheapest, {cheapest: machines[cheapest]})


def _candidate(base: Base, scenario: Scenario, place: _Place, count: int, system: SystemVariant) -> Candidate:
    labels = {"instance": place.instance, "count": str(count), "clouds": place.name, **system.labels}
    values: dict[str, Any] = {
        "cluster.clouds": [
            {**cloud, "workers": [_group(place.machines[cloud["name"]], count)]}
            for cloud in base.data["cluster"]["clouds"]
            if cloud["name"] in place.machines
        ],
        "system": system.spec,
        "prices.catalog": None,
        **local_partition(scenario),
        **held_out(scenario),
    }
    if len(place.machines) == 1:
        values |= {"cluster.wan": None, "prices.egress": None}
    per_hour = count * sum(machine.price or 0.0 for machine in place.machines.values())
    return Candidate(_name(labels), labels, values, per_hour)


def _group(machine: WorkerGroup, count: int) -> dict[str, Any]:
    """The group as in a scenario, self-contained."""
    return {**machine.model_dump(mode="json", by_alias=True, exclude_none=True), "count": count}


def _name(labels: Mapping[str, str]) -> str:
    parts = ["{instance}", "x{count}", "{clouds}", "{system}"] if "instance" in labels else ["{system}"]
    parts += [f"{path.rpartition('.')[2]}{{{path}}}" for path in labels if path.startswith("system.")]
    parts += ["rate{learning_rate}"] if "learning_rate" in labels else []
    return name_of("-".join(parts), labels, bare=True)
