"""The variants of a scenario that are simulated to find its stalls: each lacks some causes of them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from dlion_sim.analysis.stalls.differencing import STEPS, WITH_CHURN
from dlion_sim.errors import InputError
from dlion_sim.protocol.compose import compose
from dlion_sim.scenario import BANDWIDTH, CORES, DURATION, UNLIMITED, Scenario, Schedule, from_data, to_data
from dlion_sim.studies.stalls.faster import with_faster
from dlion_sim.sweep.identity import digest_of

Data = dict[str, Any]
_MOST = BANDWIDTH.format(BANDWIDTH.most)
_NEVER = DURATION.format(DURATION.most)


@dataclass(frozen=True)
class Variant:
    """A scenario to simulate, and the name of its folder."""

    name: str
    scenario: Scenario
    digest: str
    """Identifies all that affects durations."""


def variants(scenario: Scenario, iterations: int) -> tuple[dict[str, str], list[Variant]]:
    """The variant's name of each step and counterfactual, and the variants in the order of their runs.

    The first one is the unchanged scenario for so many `iterations` of each worker, without evaluations. Equal
    scenarios are one variant. Raises InputError for an invalid system, and for link outages without end, which need a
    duration, as these runs end by iterations.
    """
    for link, entry in (scenario.availability.links if scenario.availability else {}).items():
        if entry.is_endless:
            problem = "has outages without end, but stall analysis ends runs by iterations"
            raise InputError(problem, path=f"availability.links.{link}", allowed="outages that do not repeat")
    names: dict[str, str] = {}
    found: dict[str, Variant] = {}
    for name, data in _changed(scenario, iterations):
        changed = from_data(data)
        digest = digest_of(changed)
        if digest not in found:
            called = scenario.name if not found else f"{scenario.name}-{name}"
            found[digest] = Variant(name, changed.model_copy(update={"name": called}), digest)
        names[name] = found[digest].name
    return names, [*found.values()]


def faster_variant(scenario: Scenario, iterations: int, name: str) -> Variant:
    """The scenario with a link or machine, as named by `longest_waits`, twice as fast."""
    changed = from_data(with_faster(_shortened(to_data(scenario), iterations), name))
    folder = f"faster-{name.replace(' ', '-').replace('/', '-')}"
    return Variant(folder, changed.model_copy(update={"name": f"{scenario.name}-{folder}"}), digest_of(changed))


def _changed(scenario: Scenario, iterations: int) -> Iterator[tuple[str, Data]]:
    """The data of each variant, by name."""
    whole = _shortened(to_data(scenario), iterations)
    yield base_step(scenario), whole
    available = _without_outages(whole)
    yield STEPS[-1], available
    equal = _with_fixed_batches(_with_equal_machines(available, scenario), scenario)
    warm, unfed = _without_disk(equal), _without_input(equal)
    yield "R0", _of_one_worker(unfed)
    yield "R1", _in_one_place(unfed)
    yield "R1x", unfed
    yield "R3", warm
    yield "R2", equal
    for name, change in COUNTERFACTUALS.items():
        yield name, change(whole, scenario)


def base_step(scenario: Scenario) -> str:
    """The step of the unchanged scenario."""
    return WITH_CHURN if scenario.availability else STEPS[-1]


def _shortened(data: Data, iterations: int) -> Data:
    data = {key: value for key, value in data.items() if key not in ("duration", "target", "target_accuracy")}
    workload = {**data["workload"], "evaluate_every": _NEVER, "evaluation_samples": 1}
    return {**data, "iterations": iterations, "workload": workload}


def _without_outages(data: Data, _: Scenario | None = None) -> Data:
    return {key: value for key, value in data.items() if key != "availability"}


def _without_input(data: Data, _: Scenario | None = None) -> Data:
    return {**data, "workload": {key: value for key, value in data["workload"].items() if key != "input"}}


def _without_disk(data: Data) -> Data:
    given = data["workload"].get("input", {})
    if "prep_rate" not in given:
        return _without_input(data)
    return {**data, "workload": {**data["workload"], "input": {"prep_rate": given["prep_rate"]}}}


def _with_fixed_batches(data: Data, scenario: Scenario) -> Data:
    if compose(scenario.system, scenario.modules).choices["batching"].kind == "fixed":
        return data
    return {**data, "system": {**data["system"], "batching": {"kind": "fixed"}}}


def _with_equal_machines(data: Data, scenario: Scenario) -> Data:
    """With equal, constant machines that take the mean time per sample of the scenario's."""
    machines = [worker.compute for worker in scenario.cluster.workers]
    cores = [_mean_cores(machine.cores, scenario.duration) for machine in machines]
    if len({*cores}) == 1 and all(machine.cores.is_constant and not machine.noise for machine in machines):
        return data
    data = copy.deepcopy(data)
    mean = len(cores) / sum(1 / each for each in cores)
    for cloud in data["cluster"]["clouds"]:
        for group in cloud["workers"]:
            group["compute"] = {"cores": CORES.format(mean)}
    return data


def _mean_cores(cores: Schedule, duration: float | None) -> float:
    """The mean over the run's duration or, without one, a period; of steps that do not repeat, the first value."""
    over = duration or cores.repeat
    return cores.mean(over) if over else cores.value_at(0.0)


def _of_one_worker(data: Data) -> Data:
    """With one worker as Baseline, without switches, and without data that names other places."""
    data = {key: value for key, value in copy.deepcopy(data).items() if key != "prices"}
    first = data["cluster"]["clouds"][0]
    first["lan"].pop("fabric", None)
    data["cluster"] = {"clouds": [{**first, "workers": [{**first["workers"][0], "count": 1}]}]}
    data["system"] = {"name": "baseline"}
    arriving = data["workload"].get("stream", {})
    drifts = [(drift, "clouds") for drift in arriving.get("drift", [])]
    naming_places = [(data["workload"].get("partition"), "at"), (arriving.get("arrivals"), "of"), *drifts]
    for entry, places in naming_places:
        if isinstance(entry, dict):
            entry.pop(places, None)
    return data


def _in_one_place(data: Data) -> Data:
    """With paths between clouds that have the longest LAN's round-trip time, and are limited by NICs only."""
    data = copy.deepcopy(data)
    if "wan" in data["cluster"] and len(data["cluster"]["clouds"]) > 1:
        longest = max((cloud["lan"]["rtt"] for cloud in data["cluster"]["clouds"]), key=DURATION.parse)
        data["cluster"]["wan"] = {"bandwidth": UNLIMITED, "rtt": longest}
    return data


def _with_unlimited_paths(data: Data, _: Scenario) -> Data:
    data = copy.deepcopy(data)
    if wan := data["cluster"].get("wan"):
        for place in (wan, *wan["paths"]):
            place.pop("bandwidth", None)
        wan.pop("matrix", None)
        wan["bandwidth"] = UNLIMITED
    return data


def _without_round_trips(data: Data, _: Scenario) -> Data:
    data = copy.deepcopy(data)
    wan = data["cluster"].get("wan", {})
    for place in (wan, *wan.get("paths", []), *(cloud["lan"] for cloud in data["cluster"]["clouds"])):
        if "rtt" in place:
            place["rtt"] = "0 s"
    for row in wan.get("rtt_matrix", {}).values():
        row.update(dict.fromkeys(row, "0 s"))
    return data


def _with_unlimited_nics(data: Data, _: Scenario) -> Data:
    data = copy.deepcopy(data)
    groups = [group for cloud in data["cluster"]["clouds"] for group in cloud["workers"]]
    hosts = data["system"].get("topology", {}).get("hosts", [])
    for machine in (*groups, *(host for host in hosts if isinstance(host, dict))):
        machine["nic"] = {"up": _MOST, "down": _MOST}
    return data


COUNTERFACTUALS: dict[str, Callable[[Data, Scenario], Data]] = {
    "unlimited-paths": _with_unlimited_paths,
    "no-round-trips": _without_round_trips,
    "unlimited-nics": _with_unlimited_nics,
    "equal-machines": _with_equal_machines,
    "free-input": _without_input,
    "no-outages": _without_outages,
}
"""Without limits of paths between micro-clouds, without latency, without limits of NICs, with equal machines, without
preparing and reading samples, without outages."""
