"""When participants and links are down: as the scenario says, and as its seed draws."""

from __future__ import annotations

import math
from itertools import islice
from typing import Any

from dlion_sim.assembly import Outage, Outages
from dlion_sim.scenario import Schedule, from_data
from dlion_sim.scenario.topology import ServerHost

WAN = {"bandwidth": "40 Mbps", "rtt": "60 ms"}


def outages(availability: dict[str, Any], *, hosts: tuple[int | ServerHost, ...] = (), **changed: Any) -> Outages:
    """Of edge/0 to edge/3 and core/0."""
    data: dict[str, Any] = {
        "name": "changing",
        "duration": "100 s",
        "workload": {
            "dataset": "digits",
            "model": "mlp",
            "optimizer": {"kind": "sgd", "learning_rate": 0.05},
            "batch_size": 32,
        },
        "cluster": {
            "clouds": [{"name": "edge", "workers": [{"count": 4}]}, {"name": "core", "workers": [{"count": 1}]}],
            "wan": WAN,
        },
        "system": "dlion",
        "availability": availability,
    }
    return Outages.of(from_data({**data, **changed}), hosts)


def times(found: Outages, number: int) -> list[tuple[float, float]]:
    return [(each.begin, each.end) for each in islice(found.participant(number), 1000)]


def test_nothing_is_ever_down_by_default() -> None:
    found = outages({})
    assert [times(found, number) for number in range(5)] == [[]] * 5
    assert (found.absent_at_start, found.links("edge", "core"), found.link_outages("edge", "core")) == (set(), None, ())


def test_a_worker_a_pattern_and_a_cloud() -> None:
    found = outages(
        {
            "workers": {
                "edge/*": {"down": [["50 s", "60 s"]]},
                "edge/1": {"down": [["10 s", "20 s"], ["70 s", None]], "kind": "leave"},
            },
            "clouds": {"edge": {"down": [["15 s", "30 s"]], "kind": "preemption", "notice": "5 s"}},
        }
    )
    assert list(found.participant(1)) == [Outage(10, 30, "leave"), Outage(70, math.inf, "leave")]
    assert list(found.participant(0)) == [Outage(15, 30, "preemption", 5), Outage(50, 60, "crash")]
    assert times(found, 4) == []
    assert found.next_after(1, 10.0) == Outage(10, 30, "leave")
    assert found.next_after(1, 10.1) == Outage(70, math.inf, "leave")
    assert found.next_after(1, 71.0) is None


def test_who_comes_later_is_absent_at_the_start() -> None:
    assert outages({"workers": {"edge/2": {"down": [["0 s", "20 s"]]}}}).absent_at_start == {2}


def test_a_machine_that_goes_before_its_process_runs_was_never_there() -> None:
    down = {"down": [["10 s", "20 s"], ["24 s", "30 s"], ["36 s", "40 s"]]}
    assert times(outages({"workers": {"edge/0": down}, "restart": "5 s"}), 0) == [(10, 30), (36, 40)]


def test_servers_go_with_their_worker_or_their_cloud() -> None:
    found = outages(
        {
            "workers": {"edge/0": {"down": [["10 s", "20 s"]]}},
            "clouds": {"core": {"down": [["30 s", "40 s"]]}},
            "servers": {"server 6": {"down": [["50 s", "60 s"]]}},
        },
        hosts=(0, ServerHost(cloud="core")),
    )
    assert [times(found, number) for number in (5, 6)] == [[(10, 20)], [(30, 40), (50, 60)]]


def test_schedules_that_repeat_end_with_the_run() -> None:
    down = {"workers": {"edge/0": {"down": [["10 s", "20 s"]], "repeat": "40 s"}}}
    assert times(outages(down), 0) == [(10, 20), (50, 60), (90, 100)]
    without_end = outages(down, duration=None, iterations=5)
    assert without_end.next_after(0, 40_000.0) == Outage(40_010, 40_020)


def test_links_carry_nothing_meanwhile() -> None:
    steps = {"steps": {"0 s": "40 Mbps", "15 s": "20 Mbps"}}
    cluster = {
        "clouds": [{"name": name, "workers": [{"count": 1}]} for name in ("east", "west")],
        "wan": {"bandwidth": steps, "rtt": "60 ms"},
    }
    links = {"west-east": {"down": [["10 s", "20 s"]]}, "east>west": {"down": [["50 s", None]]}}
    found = outages({"links": links}, cluster=cluster)
    back = ((0.0, 40e6), (10.0, 0.0), (15.0, 0.0), (20.0, 20e6))
    assert found.links("west", "east") == Schedule(back)
    assert found.links("east", "west") == Schedule((*back, (50.0, 0.0)))
    assert [(each.begin, each.end) for each in found.link_outages("east", "west")] == [(10, 20), (50, math.inf)]
