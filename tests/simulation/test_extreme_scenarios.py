"""Scenarios of extreme values: each is refused in one line, or it runs."""

import os
import random
from pathlib import Path
from typing import Any

from dlion_sim.errors import InputError
from dlion_sim.protocol.compose import compose
from dlion_sim.protocol.systems import SYSTEMS
from dlion_sim.scenario import dump, load
from dlion_sim.simulation import simulate
from dlion_sim.yaml_text import read_yaml, write_yaml
from tests.results.test_damaged_folders import places, time_limit
from tests.simulation.checkpointing.test_checkpoint import After
from tests.simulation.scenarios import digits

CASES = 60
MOST_WORKERS = 20
"""That are run."""
EVENTS = 15
QUANTITIES = ("s", "us", "h", "Gbps", "bps", "B/s", "cores", "core", "parsecs", "")
NUMBERS = (0, -1, 1, 2, 7, 0.5, 1e-300, 5e-324, 1e15, 1e308, 2**31, 2**63, 2**64, 10**30, float("nan"), float("inf"))
VALUES = (
    *(
        None,
        True,
        False,
        "",
        " ",
        "x" * 10_000,
        "no",
        "1e3",
        "1:30",
        "0x10",
        "\x00",
        "\x1b[2J",
        "東京",
        "a/b",
        "..",
        "\ud7ff",
    ),
    *([], {}, [[]], [None], [0], {"": 0}, {0: 0}, {None: None}, {"kind": "none"}, {"kind": []}, {"name": "dlion"}),
    *({"steps": {}}, {"steps": {"0 s": "1 bps"}, "repeat": "1 us"}, {"steps": {"0 s": "1 Gbps", "1e10 s": "0 bps"}}),
    *({"steps": {"0 s": "1e-300 bps", "1 ms": "1e15 bps"}, "repeat": "2 ms"}, {"trace": "/dev/zero"}, {"trace": "."}),
    *({"trace": "a\x00b"}, {"cores": {"steps": {"0 s": 1e-300, "1 ms": 0}}}, ["a", "a"], "ring", "torus", "cifar10"),
)
DEEP = 200


def sound(system: str) -> dict[str, Any]:
    """Plain data in which every key of the system stands."""
    scenario = digits(
        "duration=2 s",
        "cluster.wan.paths=[{between: [east, west], bandwidth: {steps: {0 s: 10 Mbps, 1 s: 20 Mbps}, repeat: 2 s}}]",
        "workload.optimizer={kind: adamw, warmup: 2, schedule: {kind: cosine, steps: 10}}",
        "cluster.clouds.0.lan={bandwidth: 1 Gbps, rtt: 1 ms}",
        "cluster.clouds.1.lan={fabric: {leaves: 1, spines: 2, oversubscription: 2}}",
        "workload.partition=dirichlet",
        "workload.validation=0.1",
        system=system,
    )
    resolved = scenario.model_copy(update={"system": compose(scenario.system).spec, "iterations": 100})
    data = read_yaml(dump(resolved))
    assert isinstance(data, dict)
    return data


def extreme(chance: random.Random) -> Any:
    match chance.randrange(4):
        case 0:
            return chance.choice(NUMBERS)
        case 1:
            return f"{chance.choice(NUMBERS)} {chance.choice(QUANTITIES)}"
        case 2:
            value: Any = chance.choice(VALUES)
            for _ in range(chance.choice((0, 0, 0, DEEP))):
                value = chance.choice(([value], {"a": value}))
            return value
        case _:
            return chance.choice(VALUES)


def changed(data: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """The data with one or two values that are extreme, missing or of an unknown key."""
    for _ in range(chance.choice((1, 1, 1, 2))):
        place, key = chance.choice(list(places(data)))
        match chance.randrange(8):
            case 0:
                del place[key]
            case 1 if isinstance(place, dict):
                place[chance.choice(("count", "kind", "trace", "unknown", "", 0, None))] = extreme(chance)
            case 2 if isinstance(place, list):
                place.append(place[key])
            case 3:
                place[key] = extreme(chance)
            case _:
                place[key] = alike(place[key], chance)
    return data


def alike(value: Any, chance: random.Random) -> Any:
    """An extreme value of the same kind: a whole number, a fraction, or a quantity in the same unit."""
    number = chance.choice(NUMBERS)
    if isinstance(value, int):
        return chance.choice((0, -1, 1, 2, 7, 2**31, 2**63, 10**30))
    if isinstance(value, float):
        return number
    if isinstance(value, str) and value[:1].isdigit():
        return f"{number} {value.rpartition(' ')[2]}"
    return extreme(chance)


def test_extreme_scenarios_are_refused_or_run(tmp_path: Path) -> None:
    first = int(os.environ.get("FUZZ_FIRST", 0))
    systems = [sound(system) for system in sorted(SYSTEMS)]
    refused = 0
    for case in range(first, first + CASES):
        chance = random.Random(case)
        text = write_yaml(changed(read_yaml(write_yaml(systems[case % len(systems)])), chance))
        file = tmp_path / f"{case}.yaml"
        file.write_text(text, encoding="utf-8")
        try:
            with time_limit():
                fault = refusal(file)
        except Exception as error:
            error.add_note(f"case {case}:\n{text[:5000]}")
            raise
        line = str(fault or "")
        assert line.isprintable(), (case, line)
        assert len(line) < 2000, (case, line)
        refused += bool(fault)
    assert CASES / 4 < refused < CASES


def refusal(file: Path) -> InputError | None:
    """Load a scenario and, where it is small, begin to run it."""
    try:
        scenario = load(file)
    except InputError as error:
        return error
    if len(scenario.cluster.workers) > MOST_WORKERS:
        return None
    try:
        run = simulate(scenario, file.with_suffix(""), interrupted=After(EVENTS), checkpoint_every=None)
    except InputError as error:
        return error
    assert run.summary is not None
    run.metrics(), run.links()
    return None
