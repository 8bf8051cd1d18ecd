"""`dlion run` and the commands that list: output, run folders, interrupts."""

import errno
import json
import os
import subprocess
import sys
import time

import pytest

from dlion_sim.results import Run
from dlion_sim.scenario import dump
from tests.command import dlion
from tests.simulation.scenarios import digits

PNG = b"\x89PNG"


@pytest.fixture
def scenario(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.yaml").write_text(dump(digits()))
    return tmp_path / "small.yaml"


def test_run_writes_a_run_folder_and_prints_results(capsys, monkeypatch, scenario):
    assert dlion(monkeypatch, "run", scenario, "--set", "system=baseline", "--set", "seed=5") == 0
    folder = scenario.parent / "results/runs/small-baseline-seed5"
    assert sorted(file.name for file in folder.iterdir()) == [
        "accuracy.png",
        "links.parquet",
        "manifest.json",
        "metrics.parquet",
        "scenario.yaml",
        "summary.json",
        "transfers.parquet",
    ]
    assert (folder / "accuracy.png").read_bytes().startswith(PNG)
    summary = json.loads((folder / "summary.json").read_text())
    assert {
        "scenario",
        "system",
        "seed",
        "virtual_seconds",
        "wall_seconds",
        "samples",
        "samples_per_wall_second",
    } <= set(summary)
    assert (summary["system"], summary["seed"]) == ("baseline", 5)
    output = capsys.readouterr().out
    assert "east/0" in output
    assert "% at " in output
    assert "test accuracy" in output
    assert "results/runs/small-baseline-seed5" in output.replace("\n", "")


def test_the_validation_set_is_named(capsys, monkeypatch, scenario):
    held_out = ["--set", "workload.validation=0.1", "--output", "run"]
    assert dlion(monkeypatch, "run", scenario, "--set", "duration=1 s", *held_out) == 0
    output = capsys.readouterr().out
    assert "validation accuracy" in output
    assert "test accuracy" not in output


def test_replaced_choices_are_in_the_title(capsys, monkeypatch, scenario):
    monkeypatch.setenv("COLUMNS", "120")
    arguments = ["--set", "system={name: baseline, synchronization: {kind: bounded_staleness, staleness: 2}}"]
    assert dlion(monkeypatch, "run", scenario, "--output", "out", "--set", "duration=1 s", *arguments) == 0
    assert "small · baseline, synchronization bounded_staleness, staleness 2 · seed 1" in " ".join(
        capsys.readouterr().out.split()
    )
    run = Run.open(scenario.parent / "out")
    assert run.summary["system"] == run.manifest["system"] == "baseline"
    assert run.summary["system_label"] == run.system == "baseline, synchronization bounded_staleness, staleness 2"


def test_a_second_run_gets_its_own_folder(monkeypatch, scenario):
    for _ in range(2):
        assert dlion(monkeypatch, "run", scenario, "--quiet", "--set", "duration=10 ms") == 0
    assert sorted(folder.name for folder in (scenario.parent / "results/runs").iterdir()) == [
        "small-dlion-seed1",
        "small-dlion-seed1-2",
    ]


def test_quiet_prints_nothing(capfd, monkeypatch, scenario):
    assert dlion(monkeypatch, "run", scenario, "--quiet", "--output", "out", "--set", "duration=10 ms") == 0
    assert capfd.readouterr() == ("", "")


def test_schema_prints_json(capsys, monkeypatch):
    assert dlion(monkeypatch, "schema") == 0
    assert json.loads(capsys.readouterr().out)["properties"]["seed"]


def test_a_shipped_scenario_runs_by_name(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert dlion(monkeypatch, "run", "quickstart", "--quiet", "--output", "out", "--set", "duration=10 ms") == 0
    assert Run.open(tmp_path / "out").summary["scenario"] == "quickstart"


def test_sigterm_leaves_a_readable_interrupted_run(scenario):
    process = subprocess.Popen(
        [sys.executable, "-m", "dlion_sim", "run", str(scenario), "--output", "out", "--set", "duration=1000 s"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "200"},
    )
    manifest = scenario.parent / "out" / "manifest.json"
    deadline = time.monotonic() + 120
    while not manifest.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    process.terminate()  # as Ctrl-C, see test_sweep.py
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert "interrupted" in output
    run = Run.open(scenario.parent / "out")
    assert run.manifest["status"] == run.summary["status"] == "interrupted"
    assert len(run.iterations()) == sum(run.summary["iterations"]["per_worker"])
    assert (run.folder / "accuracy.png").exists()
    assert output.endswith("interrupted; dlion run --resume out continues it\n")


def test_an_interrupted_run_resumes(capsys, monkeypatch, scenario):
    asked = iter(range(100))
    monkeypatch.setattr("dlion_sim.interrupts.Interrupts.asked", lambda _: next(asked, None) is None)
    assert dlion(monkeypatch, "run", scenario, "--output", "out", "--quiet") == 130
    assert Run.open(scenario.parent / "out").summary["virtual_seconds"] < 4
    monkeypatch.undo()
    monkeypatch.chdir(scenario.parent)
    assert dlion(monkeypatch, "run", "--resume", "out") == 0
    assert "4 s virtual" in capsys.readouterr().out
    assert Run.open(scenario.parent / "out").summary["virtual_seconds"] == 4


def test_a_full_disk_is_one_line_and_saved_rows_remain(capsys, monkeypatch, scenario):
    asked = iter(range(100))
    monkeypatch.setattr("dlion_sim.interrupts.Interrupts.asked", lambda _: next(asked, None) is None)
    assert dlion(monkeypatch, "run", scenario, "--output", "out", "--quiet") == 130
    rows = len(Run.open(scenario.parent / "out").metrics())

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr("dlion_sim.interrupts.Interrupts.asked", lambda _: False)
        full.setattr("dlion_sim.results.growing_table.pq.ParquetWriter", refuse)
        capsys.readouterr()
        assert dlion(full, "run", "--resume", "out", "--quiet") == 1
    assert capsys.readouterr().err.splitlines() == ["dlion: out/metrics.parquet: No space left on device"]
    assert len(Run.open(scenario.parent / "out").metrics()) >= rows
    monkeypatch.undo()
    monkeypatch.chdir(scenario.parent)
    assert dlion(monkeypatch, "run", "--resume", "out", "--quiet") == 0
    assert Run.open(scenario.parent / "out").summary["virtual_seconds"] == 4
