"""What a scenario may say of when machines and links are down."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from dlion_sim.errors import InputError
from dlion_sim.scenario import dump, from_data, load
from dlion_sim.scenario.availability import Availability, owners
from dlion_sim.scenario.outages import Down, ExponentialTimes, WeibullTimes

DOCS = Path(__file__).parents[2] / "docs"
DOWN = "{down: [[10 s, 20 s]]}"


def availability(file: Path, written: str) -> Availability:
    found = load(file, [f"availability={written}"]).availability
    assert found is not None
    return found


def test_all_that_may_be_said(file: Path) -> None:
    written = """{
      workers: {east/1: {down: [[10 s, 20 s], [50 s, null]]}, "east/*": {process: exponential, up: 2 h, down: 10 min}},
      clouds: {west: {down: [[30 s, 60 s]], repeat: 100 s, kind: leave}},
      links: {west-east: {down: [[40 s, 60 s]]}, "east>west": {process: weibull, up: 1 h, down: 1 min, start: any}},
      kind: preemption, notice: 2 min, on_loss: wait, detection: 1 s, silence: 5 s, restart: 30 s, sponsor: best}"""
    found = availability(file, written)
    assert found.workers["east/1"] == Down(down=[(10.0, 20.0), (50.0, math.inf)])
    assert isinstance(found.workers["east/*"], ExponentialTimes)
    assert isinstance(found.links["east>west"], WeibullTimes)
    assert found.manner(found.workers["east/1"]) == ("preemption", 120.0)
    assert found.manner(found.clouds["west"]) == ("leave", 0.0)
    file.write_text(dump(load(file, [f"availability={written}"])))
    assert load(file).availability == found


def test_there_is_none_unless_it_is_said(data: dict[str, Any]) -> None:
    scenario = from_data(data)
    assert scenario.availability is None
    assert "availability" not in dump(scenario)


def test_what_an_entry_is_of() -> None:
    entry = Down(down=[])
    found = owners({"*/0": entry, "east/*": entry, "east/1": entry}, ["east/0", "east/1", "east/2", "west/1"])
    assert found == {"*/0": ["east/0"], "east/*": ["east/2"], "east/1": ["east/1"]}


@pytest.mark.parametrize(
    ("written", "path", "words"),
    [
        ("{worker: {}}", "", ["unknown key 'worker'; did you mean 'workers'?"]),
        (
            f"{{workers: {{eest/1: {DOWN}}}}}",
            ".workers.eest/1",
            ["no worker 'eest/1'; did you mean 'east/1'?", "west/0"],
        ),
        (f'{{workers: {{"north/*": {DOWN}}}}}', ".workers.north/*", ["no worker 'north/*'"]),
        (
            f"{{clouds: {{wst: {DOWN}}}}}",
            ".clouds.wst",
            ["no cloud 'wst'; did you mean 'west'?", "allowed: east, west"],
        ),
        (f"{{links: {{east-wst: {DOWN}}}}}", ".links.east-wst", ["did you mean 'east-west'?", "allowed: east-west"]),
        (f"{{links: {{east-west: {DOWN}, west-east: {DOWN}}}}}", ".links.west-east", ["listed already", "other order"]),
        (f'{{links: {{"a>b": {DOWN}}}}}', ".links.a>b", ["no link 'a>b'", "allowed: east>west, west>east"]),
        ("{workers: {east/1: {}}}", ".workers.east/1", ["has no outages", "down, counts, machines, trace, process"]),
        ("{workers: {east/1: [1 s, 2 s]}}", ".workers.east/1", ["a mapping", "not a list"]),
        ("{workers: {east/1: {down: [[1 s]]}}}", ".workers.east/1.down.0", ["a pair of times", "[10 s, 20 s]"]),
        ("{workers: {east/1: {down: [[1, 2 s]]}}}", ".workers.east/1.down.0", ["1 is not a duration"]),
        ("{workers: {east/1: {down: [[2 s, 2 s]]}}}", ".workers.east/1.down.0", ["ends at 2 s", "not after 2 s"]),
        (
            "{workers: {east/1: {down: [[1 s, 3 s], [2 s, 4 s]]}}}",
            ".workers.east/1.down",
            ["one after another", "begins at 2 s", "until 3 s"],
        ),
        (
            "{workers: {east/1: {down: [[1 s, null], [2 s, 4 s]]}}}",
            ".workers.east/1.down",
            ["one after another", "is permanent"],
        ),
        ("{workers: {east/1: {down: [[1 s, 9 s]], repeat: 5 s}}}", ".workers.east/1.down", ["repeats, 5 s later"]),
        ("{workers: {east/1: {down: [[0 s, 5 s]], repeat: 5 s}}}", ".workers.east/1.down", ["down at all times"]),
        ("{workers: {east/1: {counts: {1 s: 3}}}}", ".workers.east/1.counts", ["first count must be at 0 s"]),
        ("{workers: {east/1: {counts: {0 s: 3, 0 ms: 2}}}}", ".workers.east/1.counts", ["two counts", "same time"]),
        ("{workers: {east/1: {counts: {0 s: -3}}}}", ".workers.east/1.counts.0 s", ["0 or more"]),
        ("{workers: {east/1: {machines: []}}}", ".workers.east/1.machines", ["1 or more entries"]),
        ("{workers: {east/1: {process: poisson}}}", ".workers.east/1.process", ["'poisson' is unknown", "weibull"]),
        ("{workers: {east/1: {process: [markov]}}}", ".workers.east/1.process", ["unknown"]),
        ("{workers: {east/1: {process: exponential, up: 1 h}}}", ".workers.east/1.down", ["is required"]),
        ("{workers: {east/1: {process: exponential, up: 0 s, down: 1 s}}}", ".workers.east/1.up", ["0.001 or more"]),
        (
            "{workers: {east/1: {process: markov, step: 1 h, fail: 1e-300, recover: 1}}}",
            ".workers.east/1",
            ["too long", "10000000000 s on average"],
        ),
        ("{on_loss: panic}", ".on_loss", ["'panic' is unknown", "'go_on', 'wait' or 'abort'"]),
        ("{silence: 0 s}", ".silence", ["more than 0"]),
        (
            "{workers: {east/1: {down: [[1 s, 2 s]], notice: 3 s}}}",
            ".workers.east/1",
            ["a crash has no notice", "kind: preemption"],
        ),
        ("{links: {east-west: {down: [[1 s, 2 s]], kind: leave}}}", ".links.east-west", ["neither kind nor notice"]),
    ],
)
def test_invalid_availability(file: Path, written: str, path: str, words: list[str]) -> None:
    with pytest.raises(InputError) as refusal:
        availability(file, written)
    assert refusal.value.path == (f"availability{path}" if path else "availability")
    assert all(word in str(refusal.value) for word in words), str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_links_need_a_bandwidth_that_can_be_0_and_an_end(file: Path) -> None:
    link = f"availability={{links: {{east-west: {DOWN}}}}}"
    with pytest.raises(InputError, match=r"links.east-west: the path from 'east' to 'west' is unlimited"):
        load(file, [link, "cluster.wan={bandwidth: unlimited, rtt: 60 ms}"])
    endless = "availability={links: {east-west: {process: exponential, up: 1 min, down: 1 s}}}"
    with pytest.raises(InputError, match="the run has no duration; allowed: with duration"):
        load(file, [endless, "duration=null", "iterations=5"])
    load(file, [link, "duration=null", "iterations=5"])
    load(file, [endless])


def test_the_example_of_the_page_is_valid(data: dict[str, Any]) -> None:
    (text,) = re.findall(r"```yaml\n(availability:.*?)```", (DOCS / "availability.md").read_text(), re.DOTALL)
    for cloud, name in zip(data["cluster"]["clouds"], ("edge", "core"), strict=True):
        cloud["name"] = name
    found = from_data({**data, **yaml.safe_load(text)}).availability
    assert found is not None
    assert (len(found.workers), found.restart) == (2, 5.0)
