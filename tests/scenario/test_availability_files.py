"""Files that tell when machines were there: each against an excerpt of a real one, and against what is none."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path

import pytest

from dlion_sim.errors import InputError
from dlion_sim.scenario import Scenario, dump, load
from dlion_sim.scenario.outages import Counts, Down, EmpiricalTimes, Machines

OOBLECK = "0,add,node1\n0,add,node2\n60000,add,node3\n2040000,remove,node2\n2580000,add,node33\n3060000,remove,node1\n"
"""Of its p3-trace.csv."""
PARCAE = "0,1\n0,2\n0,3\n60000,4\n180000,5\n180000,6\n2040000,5\n2040000,4\n"
"""Of its p3.csv."""
BAMBOO = "0.000,10\n11.415,10\n11.415,9\n11.635,9\n11.635,10\n"
"""Hours, of its p2-xlarge-us-east-1e."""
FEDSCALE = {
    "3834": {
        "duration": 211625,
        "inactive": [65881, 133574],
        "finish_time": 518400,
        "active": [12788, 100044],
        "model": "CPH1801",
    },
    "107740": {
        "duration": 1,
        "inactive": [88494, 93284],
        "finish_time": 432000,
        "active": [88494, 93283],
        "model": "SM-G611MT",
    },
}
SIMGRID = "# of its examples\nPERIODICITY 2.0\n1.0 0\n1.5 1\n"
SKYPILOT = {"metadata": {"gap_seconds": 30}, "data": [0, 0, 1, 1, 1, 0]}
INTERVALS = (
    "kind,nodes,zone,start_s,end_s,value\npreemption,4,us-east-1f,0,300,0\npreemption,4,us-east-1f,300,900,3\n"
    "preemption,4,us-west-2c,0,8400,4\npreemption,4,us-west-2c,8400,11100,0\n"
)
LIFETIMES = "campaign,gpu,lifetime_s\n2019-02,K80,86760\n2019-02,K80,1920\n2019-02,V100,60\n2018,K80,0\n"


def loaded(file: Path, entry: str) -> Scenario:
    return load(file, [f"availability.workers={{'*': {entry}}}"])


def entry_of(file: Path, text: object, entry: str) -> object:
    content = text if isinstance(text, str) else json.dumps(text)
    (file.parent / "trace").write_text(content)
    scenario = loaded(file, f"{{trace: trace, {entry}}}")
    (file.parent / "trace").unlink()
    file.write_text(dump(scenario))
    assert load(file) == scenario, "a resolved scenario needs the trace no more"
    assert scenario.availability is not None
    return scenario.availability.workers["*"]


def test_nodes_take_the_places_of_those_that_went(file: Path) -> None:
    entry = entry_of(file, OOBLECK, "format: nodes, kind: preemption")
    assert isinstance(entry, Machines)
    assert entry.kind == "preemption"
    assert [each.down for each in entry.machines] == [[(3060, math.inf)], [(2040, 2580)], [(0, 60)]]


def test_nodes_that_are_removed_before_they_are_added_are_there_at_first(file: Path) -> None:
    entry = entry_of(file, "10,remove,a\n20,add,b\n30,remove,b\n40,add,a\n", "format: nodes, unit: s")
    assert isinstance(entry, Machines)
    assert [each.down for each in entry.machines] == [[(10, 20), (30, 40)]]


def test_counts(file: Path) -> None:
    entry = entry_of(file, PARCAE, "format: counts, unit: ms")
    assert isinstance(entry, Counts)
    assert entry.counts == {0: 3, 60: 4, 180: 6, 2040: 4}
    entry = entry_of(file, BAMBOO, "format: counts, unit: h, repeat: 12 h, offset: 11.5 h")
    assert isinstance(entry, Counts)
    assert (entry.counts, entry.repeat) == ({0: 9, 486: 10, 1800: 10, 1800 + 41094: 9}, 43200)


def test_states_of_simgrid(file: Path) -> None:
    assert entry_of(file, SIMGRID, "format: simgrid") == Down(down=[(1.0, 1.5)], repeat="2 s")  # type: ignore[arg-type]
    loop = SIMGRID.replace("PERIODICITY", "LOOPAFTER")
    assert entry_of(file, loop, "format: simgrid") == Down(down=[(1.0, 1.5)], repeat="3.5 s")  # type: ignore[arg-type]
    assert entry_of(file, "3 0\n", "format: simgrid") == Down(down=[(3.0, math.inf)])
    over_the_end = entry_of(file, "PERIODICITY 10\n2 1\n8 0\n", "format: simgrid")
    assert over_the_end == Down(down=[(8.0, 12.0)], repeat="10 s")  # type: ignore[arg-type]


def test_clients_of_fedscale(file: Path) -> None:
    entry = entry_of(file, FEDSCALE, "format: fedscale")
    assert isinstance(entry, Machines)
    first, second = entry.machines
    assert first.down == [(0, 12788), (65881, 100044), (133574, 518400)]
    assert (second.down, second.repeat) == ([(0, 93283), (93284, 432000)], 432000)
    alone = entry_of(file, FEDSCALE["3834"], "format: fedscale, offset: 70000 s")
    assert isinstance(alone, Machines)
    # At 70,000 s into each period it is down; 518,400 s is where the period begins anew.
    assert alone.machines[0].down == [(0, 30044), (63574, 448400), (448400, 461188), (514281, 518400)]


def test_spot_traces_of_skypilot(file: Path) -> None:
    entry = entry_of(file, SKYPILOT, "format: skypilot, repeat: 180 s")
    assert isinstance(entry, Counts)
    assert (entry.counts, entry.repeat) == ({0: 0, 60: 1, 150: 0}, 180)


def test_intervals_of_one_series(file: Path) -> None:
    entry = entry_of(file, INTERVALS, "format: intervals, where: {zone: us-west-2c, nodes: 4}")
    assert isinstance(entry, Counts)
    assert entry.counts == {0: 4, 8400: 0}


def test_lifetimes(file: Path) -> None:
    entry = entry_of(file, LIFETIMES, "format: lifetimes, where: {gpu: K80}, down: 10 min")
    assert isinstance(entry, EmpiricalTimes)
    assert (entry.up, entry.down) == ([86760, 1920, 0.001], [600])


def test_a_file_may_be_compressed(file: Path) -> None:
    (file.parent / "trace.csv.gz").write_bytes(gzip.compress(PARCAE.encode()))
    availability = loaded(file, "{trace: trace.csv.gz, format: counts, unit: ms}").availability
    assert availability is not None
    assert isinstance(availability.workers["*"], Counts)


@pytest.mark.parametrize(
    ("content", "entry", "words"),
    [
        (None, "format: counts", ["is missing"]),
        ("", "format: counts", ["is empty"]),
        ("0,1\n", "format: csv", ["'csv' is unknown"]),
        ("0,1\n", "repaet: 1 s", ["unknown key 'repaet'", "'repeat'"]),
        ("0,1\n", "format: counts, where: {a: 1}", ["where does not apply to counts", "offset, repeat, unit"]),
        ("0,1\n9,2\n", "format: counts, repeat: 9 s", ["last count is at 9 s", "a longer period"]),
        ("0,1\nnine,2\n", "format: counts", ["line 2", "'nine' is not a time"]),
        ("0,1\n9,-2\n", "format: counts", ["line 2", "'-2' is not a count", "0 to 10000"]),
        ("0,1\n9,1e9\n", "format: counts", ["line 2", "not a count"]),
        ("0,1\n9,99999\n", "format: counts", ["line 2", "not a count"]),
        ("9,1\n0,2\n", "format: counts", ["line 2", "0 s comes after 9 s"]),
        ("0,1,2\n", "format: counts", ["line 1", "does not have 2 cells", "time,count"]),
        ("0,add\n", "format: nodes", ["line 1", "does not have 3 cells"]),
        ("0,put,a\n", "format: nodes", ["line 1", "'put' is not an event", "add, remove"]),
        ("0,add,a\n5,add,a\n", "format: nodes", ["line 2", "'a' was added already"]),
        ("0,remove,a\n5,remove,a\n", "format: nodes", ["line 2", "'a' was not added"]),
        ("0 0.5\n", "format: simgrid", ["line 1", "'0.5' is not a state"]),
        ("STOCHASTIC LOOP\n", "format: simgrid", ["'LOOP' is not a state"]),
        ("PERIODICITY 2\n", "format: simgrid", ["has no states"]),
        ("PERIODICITY 2\n3 0\n", "format: simgrid", ["repeats before its last state"]),
        ("PERIODICITY 0\n0 0\n0 1\n", "format: simgrid", ["repeats before its last state"]),
        ("{", "format: fedscale", ["not JSON"]),
        ("[" * 100_000, "format: fedscale", ["not JSON"]),
        ("[]", "format: fedscale", ["holds no clients"]),
        ('{"1": {"active": [1], "inactive": [2]}}', "format: fedscale", ["client '1' has no times"]),
        ('{"1": {"active": [1], "inactive": [], "finish_time": 9}}', "format: fedscale", ["does not become inactive"]),
        ('{"1": {"active": [3], "inactive": [2], "finish_time": 9}}', "format: fedscale", ["does not become inactive"]),
        ('{"1": {"active": [NaN], "inactive": [2], "finish_time": 9}}', "format: fedscale", ["has no times"]),
        ('{"data": [1]}', "format: skypilot", ["has no data"]),
        ('{"metadata": {"gap_seconds": 0}, "data": [1]}', "format: skypilot", ["no gap_seconds"]),
        ('{"metadata": {"gap_seconds": 9}, "data": ["x"]}', "format: skypilot", ["'x' is not a count"]),
        ("a,b\n1,2\n", "format: intervals", ["no column 'start_s'", "allowed: a, b"]),
        (INTERVALS, "format: intervals", ["line 4", "one series, by where", "zone"]),
        (INTERVALS, "format: intervals, where: {zonne: 1}", ["no column 'zonne'", "did you mean 'zone'?"]),
        (INTERVALS, "format: intervals, where: {zone: mars}", ["no rows where", "mars"]),
        (LIFETIMES, "format: lifetimes", ["do not say when the next machine starts", "down: 10 min"]),
        ("lifetime_s\n-3\n", "format: lifetimes, down: 1 s", ["line 2", "'-3' is not a time"]),
        ("\0\n", "format: lifetimes, down: 1 s", ["no column 'lifetime_s'"]),
    ],
)
def test_unusable_files(file: Path, content: str | None, entry: str, words: list[str]) -> None:
    if content is not None:
        (file.parent / "t").write_text(content)
    with pytest.raises(InputError) as refusal:
        loaded(file, f"{{trace: t, {entry}}}")
    assert (refusal.value.path or "").startswith("availability.workers.*")
    assert all(word in str(refusal.value) for word in words), str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "content",
    [gzip.compress(bytes(30_000_000)), gzip.compress(PARCAE.encode())[:-9], b"\x1f\x8bno"],
    ids=["bomb", "cut", "none"],
)
def test_unusable_archives(file: Path, content: bytes) -> None:
    (file.parent / "t.gz").write_bytes(content)
    with pytest.raises(InputError, match=r"is too large once it is unpacked|cannot be read"):
        loaded(file, "{trace: t.gz, format: counts}")


def test_text_that_is_none(file: Path) -> None:
    (file.parent / "t").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="cannot be read"):
        loaded(file, "{trace: t, format: counts}")


def test_a_header_that_is_too_long_is_refused(file: Path) -> None:
    (file.parent / "t.csv").write_text("a" * 200_000 + ",b\n1,2\n")
    with pytest.raises(InputError, match="field larger than field limit"):
        loaded(file, "{trace: t.csv, format: intervals}")
