"""Capacities as YAML writes them: scalars, steps and traces."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from dlion_sim.errors import InputError
from dlion_sim.scenario import Schedule, dump, load

NIC = "cluster.clouds.0.workers.0.nic"
COMPUTE = "cluster.clouds.0.workers.0.compute"

TWO_SERIES = "trace,time_s,mbit_per_s\nbus_1,10,4.5\nbus_1,12,3\nbus_1,15,0\ntram,0,7\n"


def uplink(file: Path, nic: str) -> Schedule:
    return load(file, [f"{NIC}={nic}"]).cluster.workers[0].nic.up


def test_steps(file: Path) -> None:
    schedule = uplink(file, "{steps: {0 s: 50 Mbps, 500 s: 0 Mbps}, repeat: 1000 s}")
    assert schedule == Schedule(((0.0, 50e6), (500.0, 0.0)), repeat=1000.0)


def test_directions_apart(file: Path) -> None:
    nic = load(file, [f"{NIC}={{up: 5 Mbps, down: {{steps: {{0 s: 50 Mbps}}}}}}"]).cluster.workers[0].nic
    assert (nic.up, nic.down) == (Schedule.constant(5e6), Schedule.constant(50e6))


@pytest.mark.parametrize(
    ("written", "cores", "noise"),
    [
        ("24 cores", 24.0, 0.0),
        ("2.5", 2.5, 0.0),
        ("p2.xlarge", 630.0, 0.0),
        ("{cores: p2.8xlarge, noise: 0.1}", 5040.0, 0.1),
        ("{noise: 0.2}", 8.0, 0.2),
        ("{steps: {0 s: 3 cores}}", 3.0, 0.0),
    ],
)
def test_compute(file: Path, written: str, cores: float, noise: float) -> None:
    compute = load(file, [f"{COMPUTE}={written}"]).cluster.workers[0].compute
    assert (compute.cores, compute.noise) == (Schedule.constant(cores), noise)


@pytest.mark.parametrize("packed", [False, True], ids=["csv", "gz"])
def test_trace_becomes_steps_from_0_on(file: Path, packed: bool) -> None:
    name = "bus.csv.gz" if packed else "bus.csv"
    (file.parent / name).write_bytes(gzip.compress(TWO_SERIES.encode()) if packed else TWO_SERIES.encode())
    steps = ((0.0, 4.5e6), (2.0, 3e6), (5.0, 0.0))
    assert uplink(file, f"{{trace: {name}, series: bus_1}}") == Schedule(steps, repeat=8.0)
    assert uplink(file, f"{{trace: {name}, series: bus_1, repeat: false, unit: kbps}}").steps[0] == (0.0, 4500.0)
    assert uplink(file, f"{{trace: {name}, series: tram, value: mbit_per_s}}") == Schedule.constant(7e6)


@pytest.mark.parametrize(
    ("offset", "steps"),
    [
        ("0 s", ((0.0, 4.5e6), (2.0, 3e6), (5.0, 2e6))),
        ("1 s", ((0.0, 4.5e6), (1.0, 3e6), (4.0, 2e6), (7.0, 4.5e6))),
        ("2 s", ((0.0, 3e6), (3.0, 2e6), (6.0, 4.5e6))),
        ("21 s", ((0.0, 2e6), (3.0, 4.5e6), (5.0, 3e6))),
    ],
)
def test_an_offset_into_a_trace(file: Path, offset: str, steps: tuple[tuple[float, float], ...]) -> None:
    (file.parent / "bus.csv").write_text("time_s,mbit_per_s\n10,4.5\n12,3\n15,2\n")  # and again after 8 s
    whole = uplink(file, "{trace: bus.csv}")
    schedule = uplink(file, f"{{trace: bus.csv, offset: {offset}}}")
    assert schedule == Schedule(steps, repeat=8.0)
    for time in range(20):
        assert schedule.value_at(time) == whole.value_at(time + float(offset.removesuffix(" s")))


def test_a_trace_that_ends_is_cut_at_its_offset(file: Path) -> None:
    (file.parent / "bus.csv").write_text("time_s,mbit_per_s\n10,4.5\n12,3\n15,2\n")
    assert uplink(file, "{trace: bus.csv, repeat: false, offset: 3 s}") == Schedule(((0.0, 3e6), (2.0, 2e6)))
    with pytest.raises(InputError, match="last sample is at 5 s; allowed: 0 s to 5 s"):
        uplink(file, "{trace: bus.csv, repeat: false, offset: 6 s}")


def test_a_resolved_scenario_does_not_need_its_trace(file: Path) -> None:
    trace = file.parent / "bus.csv"
    trace.write_text(TWO_SERIES)
    scenario = load(file, [f"{NIC}={{trace: bus.csv, series: bus_1}}"])
    trace.unlink()
    file.write_text(dump(scenario))
    assert load(file) == scenario


@pytest.mark.parametrize(
    ("text", "trace", "words"),
    [
        (None, "{trace: t.csv}", ["no such file"]),
        ("", "{trace: t.csv}", ["not a readable CSV file"]),
        ("time_s,mbit_per_s\n", "{trace: t.csv}", ["no samples"]),
        ("when,mbit_per_s\n0,1\n", "{trace: t.csv}", ["no column 'time_s'", "allowed: when, mbit_per_s"]),
        (TWO_SERIES, "{trace: t.csv}", ["several series", "allowed: bus_1, tram"]),
        (TWO_SERIES, "{trace: t.csv, series: bus_2}", ["no series 'bus_2'", "did you mean 'bus_1'?"]),
        (TWO_SERIES, "{trace: t.csv, series: tram, value: mbps}", ["no column 'mbps'", "mbit_per_s"]),
        ("time_s,up,down\n0,1,2\n", "{trace: t.csv}", ["2 numeric columns", "allowed: up, down"]),
        ("time_s,up\n0,1\n", "{trace: t.csv, series: x}", ["no column 'trace'"]),
        ("time_s,up\n0,1\n1,fast\n", "{trace: t.csv, value: up}", ["line 3", "'fast'", "not a number"]),
        ("time_s,up\n0,1\nsoon,1\n", "{trace: t.csv}", ["line 3", "'soon'", "not a number"]),
        ("time_s,up\n0,1\n5,1\n5,2\n", "{trace: t.csv}", ["line 4", "times must increase"]),
        ("time_s,up\n0,1\n5,-1\n", "{trace: t.csv}", ["negative"]),
        ("time_s,up\n0,0\n5,1\n", "{trace: t.csv}", ["must not start with an outage"]),
        ("time_s,up\n0,1\n", "{trace: t.csv, unit: Mb}", ["not a unit of a bandwidth", "Mbps"]),
        ("time_s,up\n0,1\n", "{trace: t.csv, repaet: true}", ["unknown key 'repaet'", "'repeat'"]),
    ],
)
def test_unusable_traces(file: Path, text: str | None, trace: str, words: list[str]) -> None:
    if text is not None:
        (file.parent / "t.csv").write_text(text)
    with pytest.raises(InputError) as refusal:
        uplink(file, trace)
    assert (refusal.value.path or "").startswith(NIC)
    assert refusal.value.further == ()
    assert all(word in str(refusal.value) for word in words), str(refusal.value)


def test_a_truncated_archive_is_refused(file: Path) -> None:
    (file.parent / "t.csv.gz").write_bytes(gzip.compress(TWO_SERIES.encode())[:-9])
    with pytest.raises(InputError, match=r"t\.csv\.gz cannot be read"):
        uplink(file, "{trace: t.csv.gz}")
