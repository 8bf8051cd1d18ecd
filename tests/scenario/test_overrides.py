"""What overrides reach, what they come to nothing of, and what is said to be their fault."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dlion_sim.errors import InputError
from dlion_sim.scenario import find, from_data, load
from dlion_sim.scenario.overrides import Override
from dlion_sim.scenario.shipped import shipped

ONE_CLOUD = ["cluster.clouds=[{name: only, workers: [{count: 2}]}]", "cluster.wan=null"]


def test_all_entries_of_a_list_are_set_at_once() -> None:
    cluster = load(find("quickstart"), ["cluster.wan.paths.*.rtt=200 ms", "cluster.clouds.*.workers.*.nic=1 Mbps"])
    assert {cluster.cluster.wan_path(a, b)[1] for a, b in (("east", "west"), ("north", "east"))} == {0.2}
    assert {worker.nic.up.value_at(0) for worker in cluster.cluster.workers} == {1e6}


def test_a_part_does_not_overwrite_what_is_set_inside_it() -> None:
    inside, whole = "system.exchange.density=0.1", "system=dlion_sparse"
    orders = [inside, whole], [whole, inside]
    first, second, neither = (load(find("quickstart"), overrides) for overrides in (*orders, [whole]))
    assert first == second != neither


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["cluster.wan.rtt=20 ms"], "all of cluster.wan.paths have their own rtt; allowed: cluster.wan.paths.*.rtt"),
        ([*ONE_CLOUD, "cluster.wan.rtt=20 ms"], "with one cloud nothing crosses a WAN"),
        (["cluster.clouds.0.workers.0.count=1", "cluster.clouds.0.lan.rtt=1 ms"], "'east' has one machine"),
        (["cluster.wan.matrix={east: {west: 1 Mbps}}", "cluster.wan.rtt_matrix.east.west=1 ms"], "with its own"),
        (["workload.cost_as={parameters: 1e6}", "workload.cost_as.flops=1 GFLOP"], "workload.compute_time.beta"),
        (["network.model={kind: packets}", "network.model.paths=spray"], "no cloud has a fabric"),
        (["availability.workers={east/0: {down: [[1 s, 2 s]]}}", "availability.notice=5 s"], "without its own"),
    ],
    ids=lambda given: given[-1] if isinstance(given, list) else "",
)
def test_overrides_without_effect_are_refused(overrides: list[str], words: str) -> None:
    load(find("quickstart"), overrides[:-1])
    with pytest.raises(InputError) as refusal:
        load(find("quickstart"), overrides)
    assert refusal.value.file == f"`overrides` {overrides[-1]}"
    assert "nothing reads it" in refusal.value.problem
    assert words in str(refusal.value)


@pytest.mark.parametrize(
    "override",
    [
        "cluster.wan.rtt=20 ms",
        "cluster.wan.matrix.east.west=1 Mbps",
        "cluster.clouds.*.lan.rtt=1 ms",
        "cluster.wan.loss=null",
        "seed=1",
        "system=dlion",
    ],
)
def test_overrides_with_an_effect_or_equal_values_are_accepted(file: Path, override: str) -> None:
    load(file, [override])


def test_all_of_a_ready_scenario_is_read() -> None:
    warnings: list[str] = []
    for ready in shipped():
        load(ready, warn=warnings.append)
    assert warnings == []


def test_an_override_of_one_entry_without_effect(file: Path) -> None:
    with pytest.raises(InputError, match="'west' has one machine"):
        load(file, ["cluster.clouds.1.lan.rtt=1 ms"])


def test_a_fault_is_attributed_to_its_override_or_the_file(file: Path, data: dict[str, Any]) -> None:
    with pytest.raises(InputError) as refusal:
        load(file, ["seed=3", "duration=10", "workload.batch_size=x"])
    assert str(refusal.value).startswith("`overrides` duration=10: duration: 10 is not a duration")
    assert str(refusal.value.further[0]).startswith("`overrides` workload.batch_size=x: workload.batch_size: must be")
    file.write_text(file.read_text().replace("seed: 1", "seed: one"))
    with pytest.raises(InputError) as refusal:
        load(file, ["duration=10"])
    assert {fault.file for fault in (refusal.value, *refusal.value.further)} == {file, "`overrides` duration=10"}
    with pytest.raises(InputError, match=r"^`overrides` duration=10"):
        from_data(data, ["duration=10"])


@pytest.mark.parametrize(
    ("overrides", "guilty"),
    [
        (["workload.bogus=3", "workload.optimizer.learning_rate=0.1"], 0),
        (["workload.optimizer.learning_rate=0.1", "workload.bogus=3"], 1),
        (["workload={dataset: digits, model: mlp, batch_size: x}", "workload.optimizer.learning_rate=0.1"], 0),
        (["cluster.clouds.0.workers.0.nic=1 Mbps", "cluster.clouds=[{name: a, workers: [{count: x}]}]"], 1),
        (["duration=3", "duration=4"], 1),
    ],
)
def test_a_fault_is_attributed_to_the_override_of_the_value(file: Path, overrides: list[str], guilty: int) -> None:
    with pytest.raises(InputError) as refusal:
        load(file, overrides)
    assert refusal.value.file == f"`overrides` {overrides[guilty]}"


def test_a_fault_of_the_file_is_not_attributed_to_an_override(file: Path) -> None:
    file.write_text(file.read_text().replace("{dataset: digits", "{bogus: 3, dataset: digits"))
    with pytest.raises(InputError, match="unknown key 'bogus'") as refusal:
        load(file, ["workload.optimizer.learning_rate=0.1"])
    assert refusal.value.file == file


def test_a_fault_without_a_place_is_attributed_to_its_cause(file: Path) -> None:
    with pytest.raises(InputError) as refusal:
        load(file, ["seed=3", "duration=null", "workload.batch_size=8"])
    assert refusal.value.file == "`overrides` duration=null"
    assert "give duration or iterations" in str(refusal.value)


def test_files_are_relative_to_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.csv").write_text("Mbps,east,west,north\neast,,1,2\nwest,3,,4\nnorth,5,6,\n")
    (tmp_path / "t.csv").write_text("time_s,mbps\n0,7\n9,8\n")
    quickstart = find("quickstart")
    cluster = load(quickstart, ["cluster.wan.matrix=m.csv", "cluster.clouds.0.workers.0.nic={trace: t.csv}"]).cluster
    bandwidth, _ = cluster.wan_path("north", "west")
    assert bandwidth is not None
    assert bandwidth.value_at(0) == 6e6
    assert cluster.workers[0].nic.up.value_at(0) == 7e6
    monkeypatch.chdir(tmp_path.parent)
    with pytest.raises(InputError, match="no such file"):
        load(quickstart, ["cluster.wan.matrix=m.csv"])
    load(quickstart, [f"cluster.wan.matrix={tmp_path / 'm.csv'}"])


@pytest.mark.parametrize("written", ["m.csv", "{file: m.csv, unit: kbps}"])
def test_a_matrix_from_a_file_takes_single_cells(file: Path, written: str) -> None:
    corner = "Mbps" if written == "m.csv" else ""
    Path("m.csv").write_text(f"{corner},east,west\neast,,7\nwest,8,\n")
    cluster = load(file, [f"cluster.wan.matrix={written}", "cluster.wan.matrix.east.west=5 Mbps"]).cluster
    carries = [cluster.wan_path(a, b)[0] for a, b in (("east", "west"), ("west", "east"))]
    unit = 1e6 if corner else 1e3
    assert [bandwidth and bandwidth.value_at(0) for bandwidth in carries] == [5e6, 8 * unit]


def test_values_from_python_are_those_of_yaml(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link.csv").write_text("time_s,mbps\n0,5\n1,6\n")
    values = {
        "description": "\N{GRINNING FACE}",
        "seed": np.int64(7),
        "cluster.wan.paths.0.bandwidth": {"trace": Path("link.csv")},
        "duration": "1e3 s",
    }
    scenario = load(find("quickstart"), [Override.of(*each) for each in values.items()])
    assert (scenario.description, scenario.seed, scenario.duration) == ("\N{GRINNING FACE}", 7, 1000.0)
    with pytest.raises(InputError, match=r"^`overrides` seed: seed: must be 1e\+15 or less"):
        load(find("quickstart"), [Override.of("seed", 10**15 + 1)])
    assert Override.of("workload.batch_size", np.arange(2)).value == [0, 1]
    with pytest.raises(InputError, match=r"^`overrides` seed: is no data: .*; allowed: what YAML has, arrays, paths"):
        Override.of("seed", object())
