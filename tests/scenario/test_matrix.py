"""Bandwidths between all clouds, read from what was measured."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from dlion_sim.errors import InputError
from dlion_sim.scenario import Schedule, dump, load
from dlion_sim.scenario.matrix import read_bandwidths

MATRIX = "cluster.wan.matrix"
RTT = "cluster.wan={rtt: 60 ms, bandwidth: 1 Gbps}"


def paths(file: Path, matrix: str) -> list[float | None]:
    """Bandwidths there and back, in bps."""
    cluster = load(file, [RTT, f"{MATRIX}={matrix}"]).cluster
    found = [cluster.wan_path(*ends) for ends in (("east", "west"), ("west", "east"))]
    assert [rtt for _, rtt in found] == [0.06, 0.06]
    return [bandwidth and bandwidth.value_at(0) for bandwidth, _ in found]


@pytest.mark.parametrize(
    ("text", "matrix"),
    [
        ("Mbps,east,west\neast,,40\nwest,2.5,-\n", "m.csv"),
        ("from (Mbps),west,east\nwest,0,2.5\neast,40,0\n", "m.csv"),
        (",east,west\neast,,40 Mbps\nwest,2500 kbps,\n", "m.csv"),
        ("cloud,east,west\n east, 1, 40\n\nwest, 2.5, 1\n", "{file: m.csv, unit: Mbps}"),
        ("", "{east: {west: 40 Mbps}, west: {east: 2.5 Mbps}}"),
    ],
)
def test_each_direction_has_its_own(file: Path, text: str, matrix: str) -> None:
    (file.parent / "m.csv").write_text(text)
    assert paths(file, matrix) == [40e6, 2.5e6]


def test_missing_cells_are_the_wans_and_listed_paths_have_precedence(file: Path) -> None:
    (file.parent / "m.csv").write_text("Mbps,west\neast,40\n")
    cluster = load(file, [f"{MATRIX}=m.csv"]).cluster
    assert cluster.wan_path("west", "east") == (Schedule.constant(40e6), 0.06)
    listed = "cluster.wan.paths=[{from: east, to: west, rtt: 1 ms}, {from: west, to: east, bandwidth: 1 Mbps}]"
    cluster = load(file, ["cluster.wan={rtt: 60 ms, bandwidth: 7 Mbps}", f"{MATRIX}=m.csv", listed]).cluster
    assert cluster.wan_path("east", "west") == (Schedule.constant(40e6), 0.001)
    assert cluster.wan_path("west", "east") == (Schedule.constant(1e6), 0.06)


def test_a_cell_of_its_own_leaves_the_rest_of_a_matrix_from_a_file_in_effect(file: Path) -> None:
    (file.parent / "m.csv").write_text("Mbps,east,west\neast,,40\nwest,2.5,\n")
    warnings: list[str] = []
    wan = "cluster.wan={rtt: 60 ms, matrix: {file: m.csv, unit: Mbps, east: {west: 5 Mbps}}}"
    cluster = load(file, [wan], warn=warnings.append).cluster
    found = [cluster.wan_path(*ends)[0] for ends in (("east", "west"), ("west", "east"))]
    assert found == [Schedule.constant(5e6), Schedule.constant(2.5e6)]
    assert warnings == []


def test_a_matrix_must_connect_all_clouds(file: Path) -> None:
    paths = "paths: [{from: west, to: east, bandwidth: 1 Mbps, rtt: 60 ms}], rtt: 1 ms"
    assert load(file, [f"cluster.wan={{matrix: {{east: {{west: 1 Mbps}}}}, {paths}}}"]).cluster.wan
    with pytest.raises(InputError, match="no path leads from 'west' to 'east'"):
        load(file, ["cluster.wan={matrix: {east: {west: 1 Mbps}}}"])


def test_the_resolved_scenario_needs_the_file_no_more(file: Path) -> None:
    table = file.parent / "m.csv"
    table.write_text("Mbps,east,west\neast,,40\nwest,2.5,\n")
    scenario = load(file, [f"{MATRIX}=m.csv"])
    table.unlink()
    text = dump(scenario)
    assert "m.csv" not in text
    file.write_text(text)
    assert load(file) == scenario


@pytest.mark.parametrize(
    ("text", "matrix", "words"),
    [
        (None, "m.csv", ["m.csv: no such file or folder"]),
        ("", "m.csv", ["not a readable CSV"]),
        (",east,west\neast,,40\nwest,2,\n", "m.csv", ["line 2 (from 'east'), column 'west'", "40 has no unit", "Mbps"]),
        ("Mbps,east,west\neast,,fast\nwest,2,\n", "m.csv", ["line 2 (from 'east'), column 'west'", "'fast' is not a"]),
        ("Mbps,east,west\neast,,1\nwest,-2,\n", "m.csv", ["line 3 (from 'west'), column 'east'", "negative"]),
        ("Mbps,east,west\neast,,0\nwest,2,\n", "m.csv", ["line 2 (from 'east'), column 'west'", "outage"]),
        ("Mbps,east,west\neast,,1\neast,,2\n", "m.csv", ["line 3", "'east' exists already"]),
        ("Mbps,east,west,west\neast,,1,2\n", "m.csv", ["column 'west'", "twice"]),
        ("Mbps,east,wset\neast,,1\nwest,1,\n", "m.csv", ["no cloud 'wset'; did you mean 'west'?"]),
        ("Mbps,east\neast,1,2\n", "m.csv", ["m.csv", "line 2"]),
        ("x", "{file: m.csv, unit: Mb}", ["'Mb' is not a unit of a bandwidth"]),
        ("x", "{east: {east: 1 Mbps}}", ["leads from 'east' to itself"]),
        ("x", "{east: {west: fast}}", ["matrix.east.west: 'fast' is not a bandwidth"]),
    ],
)
def test_unusable_matrices(file: Path, text: str | None, matrix: str, words: list[str]) -> None:
    if text is not None:
        (file.parent / "m.csv").write_text(text)
    with pytest.raises(InputError) as refusal:
        load(file, [f"{MATRIX}={matrix}"])
    assert (refusal.value.path or "").startswith(MATRIX)
    assert all(word in str(refusal.value) for word in words), str(refusal.value)


def iperf3(rate: float, protocol: str = "TCP") -> dict[str, Any]:
    """What `iperf3 -J` prints, as far as it matters."""
    sums = {"sum_sent": {"bits_per_second": rate * 1.01}, "sum_received": {"bits_per_second": rate}}
    return {"start": {"test_start": {"protocol": protocol}}, "end": sums}


def test_iperf3s_results_are_what_a_path_carries(file: Path) -> None:
    folder = file.parent / "results"
    folder.mkdir()
    for name, rate in {"east-to-west": 40e6, "west-to-east": 2.5e6}.items():
        (folder / f"{name}.json").write_text(json.dumps(iperf3(rate * 1448 / 1514)))
    assert paths(file, "results") == pytest.approx([40e6, 2.5e6])


@pytest.mark.parametrize(
    ("name", "result", "words"),
    [
        ("notes.txt", "", "has no iperf3 results; allowed: SENDER-to-RECEIVER.json"),
        ("east-west.json", json.dumps(iperf3(1e6)), "does not have the sender and the receiver"),
        ("east-to-west.json", "{", "is not readable JSON"),
        ("east-to-west.json", '{"error": "unable to connect"}', "east-to-west.json: iperf3 failed: unable to connect"),
        ("east-to-west.json", "[" * 100_000, "is not readable JSON"),
        ("east-to-west.json", json.dumps(iperf3(1)).replace("1}", "1" * 400 + "}"), "has no end.sum_received"),
        ("east-to-west.json", '{"end": []}', "has no end.sum_received"),
        ("east-to-west.json", json.dumps(iperf3(1e6, "UDP")), "is of UDP; allowed: TCP"),
        ("east-to-wset.json", json.dumps(iperf3(1e6)), "no cloud 'wset'"),
    ],
)
def test_unusable_results(file: Path, name: str, result: str, words: str) -> None:
    (file.parent / "results").mkdir()
    (file.parent / "results" / name).write_text(result)
    with pytest.raises(InputError) as refusal:
        load(file, [f"{MATRIX}=results"])
    assert words in str(refusal.value)


RTTS = "cluster.wan.rtt_matrix"


@pytest.mark.parametrize(
    ("text", "matrix"),
    [
        ("ms,east,west\neast,,80\nwest,2.5,-\n", "r.csv"),
        (",east,west\neast,,80 ms\nwest,2500 us,\n", "r.csv"),
        ("cloud,west,east\nwest,0,2.5\neast,80,0\n", "{file: r.csv, unit: ms}"),
        ("", "{east: {west: 80 ms}, west: {east: 2.5 ms}}"),
    ],
)
def test_round_trip_times_may_differ_from_path_to_path(file: Path, text: str, matrix: str) -> None:
    (file.parent / "r.csv").write_text(text)
    cluster = load(file, ["cluster.wan={bandwidth: unlimited}", f"{RTTS}={matrix}"]).cluster
    assert [cluster.wan_path(*ends) for ends in (("east", "west"), ("west", "east"))] == [(None, 0.08), (None, 0.0025)]


def test_one_round_trip_time_is_that_of_both_directions_and_a_listed_path_goes_first(file: Path) -> None:
    wan = "cluster.wan={bandwidth: 1 Mbps, rtt: 1 ms, rtt_matrix: {west: {east: 80 ms}}%s}"
    cluster = load(file, [wan % ""]).cluster
    assert [cluster.wan_path(*ends)[1] for ends in (("east", "west"), ("west", "east"))] == [0.08, 0.08]
    cluster = load(file, [wan % ", paths: [{from: east, to: west, rtt: 5 ms}]"]).cluster
    assert [cluster.wan_path(*ends)[1] for ends in (("east", "west"), ("west", "east"))] == [0.005, 0.08]


def test_the_resolved_scenario_has_the_round_trip_times(file: Path) -> None:
    (file.parent / "r.csv").write_text("us,west\neast,80123\n")
    scenario = load(file, ["cluster.wan={bandwidth: unlimited}", f"{RTTS}=r.csv"])
    (file.parent / "r.csv").unlink()
    file.write_text(dump(scenario))
    assert load(file) == scenario


def test_iperf3s_round_trips_are_the_least_that_its_sender_saw(file: Path) -> None:
    folder = file.parent / "results"
    folder.mkdir()
    result = iperf3(1e6)
    result["end"]["streams"] = [{"sender": {"min_rtt": rtt, "mean_rtt": 900_000}} for rtt in (80_123, 80_200)]
    (folder / "east-to-west.json").write_text(json.dumps(result))
    cluster = load(file, ["cluster.wan={bandwidth: unlimited}", f"{RTTS}=results"]).cluster
    assert cluster.wan_path("west", "east") == (None, 0.080123)
    (folder / "east-to-west.json").write_text(json.dumps(iperf3(1e6)))
    with pytest.raises(InputError, match=r"has no end\.streams\.sender\.min_rtt; allowed: what iperf3 -J wrote on Lin"):
        load(file, ["cluster.wan={bandwidth: unlimited}", f"{RTTS}=results"])


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        ("{east: {wset: 80 ms}}", "no cloud 'wset'; did you mean 'west'"),
        ("{east: {west: 80}}", "'80|80 is not a duration"),
        ("{file: r.csv, unit: Mbps}", "'Mbps' is not a unit of a duration"),
        ("r.csv", "line 2 .from 'east'., column 'west': 80 has no unit"),
        ("missing.csv", "no such file or folder"),
    ],
)
def test_unusable_round_trip_times(file: Path, matrix: str, words: str) -> None:
    (file.parent / "r.csv").write_text(",west\neast,80\n")
    with pytest.raises(InputError, match=words):
        load(file, ["cluster.wan={bandwidth: unlimited}", f"{RTTS}={matrix}"])


def test_a_cell_of_a_matrix_goes_before_a_path_of_all_and_after_one_of_both_names(file: Path) -> None:
    """What is said of fewer paths is the more specific."""
    overrides = [
        "cluster.clouds=[{name: a, workers: [{}]}, {name: b, workers: [{}]}, {name: c, workers: [{}]}]",
        "cluster.wan.paths=[{between: [a, '*'], bandwidth: 1 Mbps, rtt: 1 ms}, {between: [a, c], bandwidth: 3 Mbps}]",
        "cluster.wan.matrix={a: {b: 2 Mbps, c: 4 Mbps}}",
    ]
    cluster = load(file, overrides).cluster
    carries = {(x, y): cluster.wan_path(x, y) for x, y in (("a", "b"), ("b", "a"), ("a", "c"), ("c", "b"))}
    found = {ways: bandwidth and bandwidth.value_at(0) for ways, (bandwidth, _) in carries.items()}
    assert found == {("a", "b"): 2e6, ("b", "a"): 1e6, ("a", "c"): 3e6, ("c", "b"): 40e6}
    assert [rtt for _, rtt in carries.values()] == [0.001, 0.001, 0.06, 0.06]
    with pytest.raises(InputError, match="listed by name too, or in a matrix"):
        load(file, [*overrides, "cluster.wan.matrix.b.a=2 Mbps", "cluster.wan.paths.0.bandwidth=5 Mbps"])


@pytest.mark.parametrize("kind", ["gz", "zip", "xz", "zst", "tar", "bz2", "csv"])
def test_what_is_no_csv_file_is_refused(file: Path, kind: str) -> None:
    (file.parent / f"m.{kind}").write_bytes(b"\x00\xff\x80")
    with pytest.raises(InputError, match=f"matrix .*m.{kind} (cannot be read|is not a readable CSV file)"):
        load(file, [f"{MATRIX}=m.{kind}"])


def test_a_pipe_is_not_waited_for(file: Path) -> None:
    os.mkfifo(file.parent / "m.csv")
    with pytest.raises(InputError, match="it is no regular file"):
        load(file, [f"{MATRIX}=m.csv"])


def test_a_cloud_may_have_a_name_that_pandas_reads_as_no_value(file: Path) -> None:
    (file.parent / "m.csv").write_text("Mbps,NA,west\nNA,,7\nwest,8\n")
    assert read_bandwidths(file.parent / "m.csv")["NA"]["west"] == Schedule.constant(7e6)
    (file.parent / "m.csv").write_bytes(gzip.compress(b"Mbps,NA,west\nNA,,7\nwest,8,\n"))
    (file.parent / "m.csv").rename(file.parent / "m.csv.gz")
    assert read_bandwidths(file.parent / "m.csv.gz")["west"] == {"NA": Schedule.constant(8e6)}
