"""When participants and links are down: as the scenario says, and as its seed draws."""

from __future__ import annotations

import math
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlion_sim.assembly import Outage, Outages
from dlion_sim.errors import InputError
from dlion_sim.scenario import Schedule, from_data
from dlion_sim.scenario.system import ServerHost

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
    assert list(found.participant(1)) == [Outage(10, 30, "leave", cut_short=15), Outage(70, math.inf, "leave")]
    assert list(found.participant(0)) == [Outage(15, 30, "preemption", 5), Outage(50, 60, "crash")]
    assert times(found, 4) == []
    assert found.next_after(1, 10.0) == Outage(10, 30, "leave", cut_short=15)
    assert found.next_after(1, 10.1) == Outage(70, math.inf, "leave")
    assert found.next_after(1, 71.0) is None


def test_a_late_participant_is_absent_at_the_start() -> None:
    assert outages({"workers": {"edge/2": {"down": [["0 s", "20 s"]]}}}).absent_at_start == {2}


def test_outages_within_the_restart_time_are_one() -> None:
    down = {"down": [["10 s", "20 s"], ["24 s", "30 s"], ["36 s", "40 s"]]}
    assert times(outages({"workers": {"edge/0": down}, "restart": "5 s"}), 0) == [(10, 30), (36, 40)]


def test_the_first_crash_or_preemption_during_a_leave_ends_it() -> None:
    leave = {"workers": {"edge/0": {"down": [["10 s", "20 s"]], "kind": "leave"}}}
    for kind, down, killed in [
        ("crash", [["15 s", "16 s"], ["17 s", "40 s"]], 15),
        ("preemption", [["15 s", "16 s"]], 15),
        ("leave", [["15 s", "16 s"]], math.inf),
        ("crash", [["30 s", "40 s"]], math.inf),
    ]:
        first = next(outages(leave | {"clouds": {"edge": {"down": down, "kind": kind}}}).participant(0))
        assert (first.begin, first.kind, first.killed_at) == (10, "leave", killed)


def test_a_process_that_still_runs_is_killed_by_the_outage_under_way_or_by_the_next() -> None:
    found = outages(
        {
            "workers": {"edge/0": {"down": [["10 s", "30 s"], ["70 s", None]], "kind": "leave"}},
            "clouds": {"edge": {"down": [["15 s", "20 s"], ["50 s", "60 s"]]}},
        }
    )
    assert [found.next_kill(0, time) for time in (0, 10, 12, 15, 15.1, 50, 51)] == [15, 15, 15, 15, 50, 50, math.inf]
    assert found.next_kill(4, 0) == math.inf


def test_servers_share_outages_of_their_worker_or_cloud() -> None:
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


def test_bandwidth_is_0_during_outages() -> None:
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


def test_capacity_schedules_continue_during_outages() -> None:
    cluster = {
        "clouds": [{"name": name, "workers": [{"count": 1}]} for name in ("east", "west")],
        "wan": {"bandwidth": {"steps": {"0 s": "40 Mbps", "1 s": "20 Mbps"}, "repeat": "3 s"}, "rtt": "60 ms"},
    }
    process = {"process": "exponential", "up": "5 s", "down": "2 s"}
    found = outages({"links": {"east-west": process}}, cluster=cluster)
    bandwidth, down = found.links("east", "west"), found.link_outages("east", "west")
    assert bandwidth is not None
    assert len(down) > 5
    assert found.links("west", "east") == bandwidth
    for time in np.arange(0.05, 100, 0.1):
        is_down = any(each.begin <= time < each.end for each in down)
        assert bandwidth.value_at(time) == (0.0 if is_down else 40e6 if time % 3 < 1 else 20e6)


@pytest.mark.parametrize(
    ("availability", "hosts", "words"),
    [
        ({"servers": {"server 5": {"down": []}}}, (0,), "'server 5' is on a worker's machine, whose outages it has"),
        ({"servers": {"server 7": {"down": []}}}, (ServerHost(cloud="core"),), "did you mean 'server 5'"),
        ({"links": {"edge-core": {"down": [["0 s", "5 s"]]}}}, (), "down from 0 s on"),
        ({"workers": {"edge/*": {"machines": [{"down": []}]}}}, (), r"workers.edge/\*: has 1 machines, but .* 4"),
    ],
)
def test_invalid_outages(availability: dict[str, Any], hosts: tuple[int | ServerHost, ...], words: str) -> None:
    with pytest.raises(InputError, match=words):
        outages(availability, hosts=hosts)


def up_at(found: Outages, time: float, numbers: range = range(4)) -> int:
    return sum(not any(begin <= time < end for begin, end in times(found, number)) for number in numbers)


@given(seed=st.integers(0, 2**32), counts=st.lists(st.integers(0, 6), min_size=1, max_size=8), repeats=st.booleans())
def test_as_many_are_up_as_the_counts_say(seed: int, counts: list[int], repeats: bool) -> None:
    told = {"counts": {f"{7 * place} s": count for place, count in enumerate(counts)}}
    period = 7 * len(counts)
    found = outages(
        {"workers": {"edge/*": told | ({"repeat": f"{period} s"} if repeats else {})}},
        seed=seed,
        cluster={"clouds": [{"name": "edge", "workers": [{"count": 6}]}]},
    )
    for time in range(100):
        assert up_at(found, time, range(6)) == counts[min((time % period if repeats else time) // 7, len(counts) - 1)]


def test_workers_are_some_of_a_larger_fleet() -> None:
    told = {"workers": {"edge/*": {"counts": {"0 s": 40, "50 s": 20}}}}
    up = [up_at(outages(told, seed=seed), 60.0) for seed in range(200)]
    assert 1.8 < np.mean(up) < 2.2
    assert {up_at(outages(told, seed=seed), 40.0) for seed in range(10)} == {4}


def test_which_machine_of_a_trace_is_which_worker_is_drawn() -> None:
    machines = [{"down": [[f"{number + 1} s", None]]} for number in range(6)]
    drawn = [
        [times(found, number)[0][0] for number in range(4)]
        for seed in range(20)
        for found in [outages({"workers": {"edge/*": {"machines": machines}}}, seed=seed)]
    ]
    assert all(len({*each}) == 4 and {*each} <= {1, 2, 3, 4, 5, 6} for each in drawn)
    assert len({*map(tuple, drawn)}) > 10


PROCESSES: dict[str, dict[str, Any]] = {
    "exponential": {"process": "exponential", "up": "30 s", "down": "10 s"},
    "weibull": {"process": "weibull", "up": "30 s", "down": "10 s", "shape": 0.7, "down_shape": 2},
    "markov": {"process": "markov", "step": "1 s", "fail": 1 / 30, "recover": 0.1},
    "empirical": {"process": "empirical", "up": ["10 s", "50 s"], "down": ["5 s", "15 s"]},
}


@pytest.mark.parametrize("process", PROCESSES.values(), ids=PROCESSES)
def test_mean_times_up_and_down_are_as_stated(process: dict[str, Any]) -> None:
    found = outages({"workers": {"edge/0": process}}, duration=None, iterations=1)
    drawn = [(each.begin, each.end) for each in islice(found.participant(0), 5000)]
    assert np.mean([end - begin for begin, end in drawn]) == pytest.approx(10, rel=0.1)
    assert np.mean([later - end for (_, end), (later, _) in pairwise(drawn)]) == pytest.approx(30, rel=0.1)


@pytest.mark.parametrize("process", PROCESSES.values(), ids=PROCESSES)
def test_a_process_may_have_begun_long_ago(process: dict[str, Any]) -> None:
    cluster = {"clouds": [{"name": "edge", "workers": [{"count": 1000}]}]}
    found = outages({"workers": {"*": {**process, "start": "any"}}}, cluster=cluster)
    for time in (0.0, 7.0, 40.0):  # As many are up at all times.
        assert up_at(found, time, range(1000)) / 1000 == pytest.approx(0.75, abs=0.05)
    assert len(found.absent_at_start) == 1000 - up_at(found, 0.0, range(1000))
    down = outages({"workers": {"*": {**process, "start": "down"}}}, cluster=cluster)
    assert len(down.absent_at_start) == 1000


@given(
    seed=st.integers(0, 2**32),
    workers=st.dictionaries(
        st.sampled_from(["edge/0", "edge/1", "edge/*", "*"]), st.sampled_from([*PROCESSES.values()]), min_size=1
    ),
    clouds=st.dictionaries(st.sampled_from(["edge", "core"]), st.sampled_from([*PROCESSES.values()])),
    restart=st.sampled_from([0, 4]),
)
def test_outages_are_disjoint_in_order_and_of_the_seed_alone(
    seed: int, workers: dict[str, Any], clouds: dict[str, Any], restart: int
) -> None:
    told = {"workers": workers, "clouds": clouds, "restart": f"{restart} s"}
    found, again = outages(told, seed=seed), outages(told, seed=seed)
    for number in reversed(range(5)):  # In whatever order somebody asks.
        drawn = times(found, number)
        assert drawn == times(again, number)
        assert all(0 <= begin < min(end, 100) for begin, end in drawn)
        assert all(end + restart < later for (_, end), (later, _) in pairwise(drawn))
        for begin, _ in drawn:
            assert again.next_after(number, begin) == found.next_after(number, math.nextafter(begin, 0))


def test_others_change_nothing_of_what_is_drawn() -> None:
    process = {"process": "exponential", "up": "5 s", "down": "2 s"}
    alone = outages({"workers": {"edge/1": process}})
    among = outages({"workers": {"edge/*": process}, "clouds": {"core": process}, "links": {"edge-core": process}})
    assert times(alone, 1) == times(among, 1) != []
    assert times(among, 1) != times(among, 2)
    assert times(alone, 1) != times(outages({"workers": {"edge/1": process}}, seed=1), 1)


def test_what_is_never_there_again_ends_what_is_asked_for() -> None:
    told = {
        "workers": {"edge/0": {"down": [["0 s", "5 s"]], "repeat": "10 s"}},
        "clouds": {"edge": {"down": [["5 s", "10 s"]], "repeat": "10 s"}},
    }
    assert times(outages(told, duration=None, iterations=1), 0) == [(0.0, math.inf)]


def test_a_link_has_the_outages_of_one_entry_for_both_directions_and_of_one_for_its_own() -> None:
    clouds = [{"name": name, "workers": [{}]} for name in "abc"]
    links = {
        "*-*": {"process": "exponential", "up": "20 s", "down": "4 s"},
        "b-a": {"down": [["10 s", "11 s"]]},
        "a>*": {"down": [["30 s", "31 s"]]},
        "a>c": {"down": []},
    }
    found = outages({"links": links}, cluster={"clouds": clouds, "wan": WAN})
    alone = outages({"links": {"*-*": links["*-*"]}}, cluster={"clouds": clouds, "wan": WAN})
    assert [each.begin for each in found.link_outages("a", "b")] == [10, 30]
    assert [each.begin for each in found.link_outages("b", "a")] == [10]
    assert found.link_outages("a", "c") == found.link_outages("c", "a") == alone.link_outages("a", "c") != ()


def test_outages_of_paths_for_the_manifest_unless_there_are_too_many() -> None:
    told = outages({"links": {"core>edge": {"down": [["10 s", "20 s"], ["50 s", None]]}}}).of_paths
    path = {"sender": "core", "receiver": "edge"}
    assert told == [{**path, "begin": 10.0, "end": 20.0}, {**path, "begin": 50.0, "end": None}]
    often = {"down": [["0.01 s", "0.02 s"]], "repeat": "0.1 s"}
    assert len(outages({"links": {"core>edge": often}}).of_paths) == 1000
    assert outages({"links": {"core-edge": often}}).of_paths is None
    assert outages({}).of_paths == []
