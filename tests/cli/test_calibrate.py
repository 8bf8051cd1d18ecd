"""`dlion calibrate`: blocks of YAML that load, and nothing written where something is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from dlion_sim.calibration import machine
from dlion_sim.scenario import dump, from_data
from tests.calibration.test_network import BANDWIDTHS, RTTS
from tests.command import dlion
from tests.simulation.scenarios import digits


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        machine, "time_gradients", lambda setting, sizes: {size: [0.01 + 1e-3 * size] for size in sizes}
    )
    (tmp_path / "b.csv").write_text(BANDWIDTHS)
    (tmp_path / "r.csv").write_text(RTTS)
    (tmp_path / "small.yaml").write_text(dump(digits()))
    return tmp_path


@pytest.mark.parametrize(
    "arguments", [["--model", "mlp", "--dataset", "digits"], ["small.yaml"], ["small.yaml", "--set", "seed=5"]]
)
def test_a_machines_block_loads(
    arguments: list[str], here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dlion(monkeypatch, "calibrate", "compute", *arguments, "-o", "block.yaml", "--device", "cpu") == 0
    text = (here / "block.yaml").read_text()
    assert text.startswith("# Measured on ")
    assert "mlp on digits; R2 1.0000" in text.splitlines()[0]
    scenario = from_data({"name": "own", "duration": "1 s", "system": "dlion", **yaml.safe_load(text)})
    compute_time = scenario.workload.compute_time
    cores = scenario.cluster.workers[0].compute.cores.value_at(0)
    assert (compute_time.alpha, compute_time.beta) == (0.01, pytest.approx(1e-3 * cores, rel=1e-3))
    output = capsys.readouterr().out
    assert "off by" in output
    assert "written: block.yaml" in output


def test_a_networks_block_loads(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert dlion(monkeypatch, "calibrate", "network", "b.csv", "--rtt", "r.csv", "-o", "block.yaml") == 0
    block = yaml.safe_load((here / "block.yaml").read_text())
    scenario = from_data(
        {"name": "own", "duration": "1 s", "system": "dlion", "workload": {"dataset": "digits"}, **block}
    )
    assert scenario.cluster.wan_path("west", "east")[1] == 0.08


@pytest.mark.parametrize(
    "arguments",
    [["compute", "small.yaml", "-q"], ["network", "b.csv", "--rtt", "r.csv", "-q"]],
)
def test_quiet_it_prints_nothing(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dlion(monkeypatch, "calibrate", *arguments, "-o", "block.yaml") == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["compute"], "SCENARIO: is missing; allowed: a scenario, or --model and --dataset"),
        (["compute", "--model", "mlp"], "SCENARIO: is missing"),
        (["compute", "small.yaml", "--model", "mlp"], "--model: does not go with a scenario"),
        (["compute", "--model", "mpl", "--dataset", "digits"], "workload.model: "),
        (["compute", "small.yaml", "--set", "workload.model=mpl"], "small.yaml: workload.model: "),
        (
            ["compute", "small.yaml", "--set", "workload.cost_as={parameters: 1 B}"],
            "small.yaml: workload.cost_as: has an",
        ),
        (["compute", "small.yaml", "-o", "small.yaml"], "small.yaml: is there already; allowed: a new file"),
        (["compute", "small.yaml", "-o", "no/block.yaml"], "no/block.yaml: is in no folder that there is"),
        (["network", "b.csv"], "b.csv: tells no round-trip times; allowed: --rtt FILE"),
        (["network", "b.csv", "--rtt", "none.csv"], "none.csv: no such file or folder"),
    ],
)
def test_what_is_wrong_is_one_line_and_nothing_is_written(
    arguments: list[str], words: str, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {file: file.read_bytes() for file in here.iterdir()}
    output = [] if "-o" in arguments else ["-o", "block.yaml"]
    assert dlion(monkeypatch, "calibrate", *arguments, *output) == 2
    told = capsys.readouterr().err
    assert words in told
    assert told.count("\n") == 1
    assert {file: file.read_bytes() for file in here.iterdir()} == before
