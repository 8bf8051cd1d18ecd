from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dlion_sim.errors import InputError
from dlion_sim.scenario import ChoiceSpec, Dirichlet, Scenario, SystemSpec, dump, find, from_data, load, shipped
from dlion_sim.yaml_text import read_yaml


def test_the_example(file: Path) -> None:
    scenario = load(file)
    assert scenario.duration == 300.0
    assert scenario.workload.evaluate_every == 10.0
    assert scenario.workload.compute_time.alpha == 0.01
    assert scenario.system == SystemSpec(name="dlion")
    assert scenario.cluster.wan is not None
    assert scenario.cluster.wan.rtt == 0.06


@pytest.mark.parametrize("path", shipped(), ids=lambda path: path.stem)
def test_a_resolved_scenario_loads_as_itself(path: Path, tmp_path: Path) -> None:
    scenario = load(path)
    resolved = tmp_path / "resolved.yaml"
    resolved.write_text(dump(scenario))
    assert load(resolved) == scenario
    assert Scenario.model_validate(scenario.model_dump(mode="json")) == scenario
    assert scenario.name == path.stem


def test_human_units_come_back(file: Path) -> None:
    text = dump(load(file))
    for written in ["duration: 300 s", "bandwidth: 40 Mbps", "rtt: 60 ms", "cores: 24 cores", "up: 50 Mbps"]:
        assert written in text


def test_choices_come_back_as_written(data: dict[str, Any], tmp_path: Path) -> None:
    data["system"] = {
        "name": "dlion",
        "exchange": {"kind": "max_n", "n_min": 10, "n_max": None, "label": "1e-3"},
        "batching": {"period": "5 s"},
        "synchronization": None,
        "knowledge_transfer": "none",
    }
    scenario = from_data(data)
    assert scenario.system.knowledge_transfer == ChoiceSpec(kind="none")
    assert scenario.system.batching == ChoiceSpec(parameters={"period": "5 s"})
    assert scenario.system.synchronization is None
    file = tmp_path / "resolved.yaml"
    file.write_text(dump(scenario))
    assert load(file) == scenario


def test_yaml_reads_numbers_and_names_as_they_look(file: Path) -> None:
    scenario = load(file, ["system.exchange={kind: off, rate: 1e-3, share: .5, on: true, until: 2024-01-01}"])
    parameters = {"rate": 0.001, "share": 0.5, "on": True, "until": "2024-01-01"}
    assert scenario.system.exchange == ChoiceSpec(kind="off", parameters=parameters)


def test_a_mapping_that_replaces_a_merged_key_may_be_merged_itself() -> None:
    text = "a: &a\n  x: 0\ntop:\n  b: &b\n    <<: *a\n    x: 1\nc:\n  <<: *b\n"
    assert read_yaml(text) == {"a": {"x": 0}, "top": {"b": {"x": 1}}, "c": {"x": 1}}


def test_overrides_reach_everywhere(file: Path) -> None:
    scenario = load(
        file,
        [
            "seed=7",
            "cluster.clouds.1.workers.0.nic=30 Mbps",
            "cluster.clouds.0.lan.rtt=1 ms",
            "system.exchange.n_min=10",
            "system.knowledge_transfer=none",
            "system.knowledge_transfer.period=100",
            "workload.partition=dirichlet",
            "workload.partition.alpha=0.1",
        ],
    )
    assert scenario.seed == 7
    assert scenario.cluster.workers[3].nic.up.value_at(0) == 30e6
    assert scenario.cluster.clouds[0].lan.rtt == 0.001
    assert scenario.system.name == "dlion"
    assert scenario.system.exchange == ChoiceSpec(parameters={"n_min": 10})
    assert scenario.system.knowledge_transfer == ChoiceSpec(kind="none", parameters={"period": 100})
    assert scenario.workload.partition == Dirichlet(alpha=0.1)


def test_overrides_leave_the_given_data_alone(data: dict[str, Any]) -> None:
    from_data(data, ["workload.batch_size=8", "system.exchange.n_min=10"])
    assert data["workload"]["batch_size"] == 32
    assert data["system"] == "dlion"


def test_json_schema_speaks_human_units() -> None:
    definitions = Scenario.model_json_schema()["$defs"]
    assert definitions["ComputeTime"]["properties"]["alpha"]["default"] == "10 ms"
    assert definitions["WorkerGroup"]["properties"]["nic"]["default"] == {"up": "1 Gbps", "down": "1 Gbps"}
    assert definitions["Workload"]["properties"]["batch_size"]["description"].startswith("Initial local batch size")


def test_find(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    (file.parent / "quickstart").mkdir()  # a run folder, say, must not hide the scenario
    assert find(file) == file
    assert find("quickstart").name == "quickstart.yaml"
    assert find("paper/homo_a") == find("scenarios/paper/homo_a.yaml") in shipped()
    with pytest.raises(InputError, match=r"homoa: no such file.*paper/homo_a"):
        find("paper/homoa")


@pytest.mark.parametrize("name", ["my.yml", "nowhere/xqz.yaml"])
def test_an_unknown_file_is_answered_with_the_command_that_lists_names(name: str) -> None:
    with pytest.raises(InputError) as refusal:
        find(name)
    assert str(refusal.value) == (
        f"{name}: no such file, nor a ready scenario of that name; allowed: any that `scenarios` lists"
    )


def test_a_misspelt_file_is_answered_with_the_nearest_one(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    with pytest.raises(InputError, match=r"nor a ready scenario of that name; allowed: example\.yaml, any that"):
        find("example.yml")
