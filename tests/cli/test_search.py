"""`dlion sweep` of a search: plan, run, kill, resume."""

import re
import sys

import pytest

from dlion_sim.cli.search import _command
from dlion_sim.results import Frames, Run
from dlion_sim.sweep import Base, Point
from tests.at_once import killed
from tests.cli.test_sweep import contents, dlion
from tests.sweep.scenarios import write_sweep

RATE = "workload.optimizer.learning_rate"
SEARCH = {
    "trials": 4,
    "metric": "accuracy",
    "over": {RATE: {"log_uniform": {"from": 0.01, "to": 1}}, "workload.batch_size": [8, 16]},
}

HELD_OUT = "workload.validation=0.2"


@pytest.fixture
def here(tmp_path, monkeypatch, at_once):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    write_sweep(tmp_path, HELD_OUT, axes={"seed": [1]}, search=SEARCH)
    return tmp_path


def table_of(output):
    return output[output.index("The best trials") :]


def test_a_search_is_planned_and_run_once(capsys, monkeypatch, here):
    assert dlion(monkeypatch, "sweep", "sweep.yaml", "--output", "out", "--dry-run") == 0
    plan = capsys.readouterr().out
    assert "0.01 to 1, logarithmic" in plan
    assert plan.endswith("chosen by tpe for the highest validation accuracy (%)\n4 trials of 1 run: 4 to do\n")
    assert not (here / "out").exists()

    assert dlion(monkeypatch, "sweep", "sweep.yaml", "--output", "out", "--jobs", "2") == 0
    first = capsys.readouterr()
    assert "4 of 4" in first.err
    rows = [line.split("│") for line in first.out.splitlines() if line.startswith("│")]
    assert sorted(int(row[1]) for row in rows) == [0, 1, 2, 3]
    assert "validation accuracy (%)" in table_of(first.out)
    values = [float(row[2]) for row in rows]
    assert values == sorted(values, reverse=True)
    best = Run.open(here / f"out/trial-{int(rows[0][1]):04d}")
    assert values[0] == pytest.approx(100 * best.summary["accuracy"]["mean"], abs=0.01)
    command = f"dlion run base.yaml --set seed=1 --set {RATE}={best.point[RATE]} --set workload.batch_size="
    assert first.out.endswith(f"the best: {command}{best.point['workload.batch_size']}\n")

    assert dlion(monkeypatch, "sweep", "sweep.yaml", "--output", "out") == 0
    again = capsys.readouterr()
    assert again.out.startswith("4 trials of 1 run: 4 done\n")
    assert table_of(again.out) == table_of(first.out)
    assert dlion(monkeypatch, "sweep", "sweep.yaml", "--output", "out", "--dry-run") == 0
    assert capsys.readouterr().out.endswith("4 trials of 1 run: 4 done\n")

    assert dlion(monkeypatch, "compare", "out") == 0
    compared = capsys.readouterr().out
    assert all(heading in compared for heading in ("trial", "learning", "batch size", "validation"))
    assert Frames.of([here / "out"]).summaries["trial"].tolist() == ["0", "1", "2", "3"]

    # The best one again, by the line that was printed.
    arguments = re.sub(r"^dlion ", "", command + best.point["workload.batch_size"]).split()
    assert dlion(monkeypatch, *arguments, "--output", "best", "--quiet") == 0
    again = Run.open(here / "best")
    assert again.summary["accuracy"] == best.summary["accuracy"]
    assert again.summary["evaluated_on"] == best.summary["evaluated_on"] == "validation"

    # And at last on the test set.
    on_test = ["--set", "workload.validation=0", "--output", "tested"]
    assert dlion(monkeypatch, *arguments, *on_test) == 0
    assert "test accuracy" in capsys.readouterr().out
    assert Run.open(here / "tested").summary["evaluated_on"] == "test"


def test_a_killed_search_resumes_to_the_same_result(capsys, monkeypatch, here):
    assert dlion(monkeypatch, "sweep", "sweep.yaml", "--output", "whole", "--jobs", "1") == 0
    table = table_of(capsys.readouterr().out)
    killed(2, "sweep", "sweep.yaml", "--output", "killed", "--jobs", "1")
    assert dlion(monkeypatch, "sweep", "sweep.yaml", "--output", "killed", "--jobs", "1") == 0
    output = capsys.readouterr().out
    assert output.startswith("4 trials of 1 run: 2 done, 1 under way, 1 to do\n")
    assert table_of(output) == table
    assert contents(here / "killed") == contents(here / "whole")


def test_a_failed_trial_is_reported_and_the_others_run(capsys, monkeypatch, here):
    # 1000 samples a batch are more than a worker has.
    write_sweep(here, HELD_OUT, search={**SEARCH, "over": {"workload.batch_size": [16, 1000]}})
    assert dlion(monkeypatch, "sweep", "sweep.yaml", "--output", "out", "--jobs", "1") == 1
    output = capsys.readouterr()
    failed = [line for line in output.err.splitlines() if line.startswith("dlion: out/trial-")]
    assert 0 < len(failed) < 4
    assert all("failed: workload.batch_size" in line for line in failed)
    assert f", {len(failed)} failed" in output.out or f": {len(failed)} failed" in output.out
    assert "1000" not in table_of(output.out)
    assert output.out.endswith("--set workload.batch_size=16\n")


def test_without_optuna_the_line_names_the_extra(capsys, monkeypatch, here):
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert dlion(monkeypatch, "sweep", "sweep.yaml", "--output", "out") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "dlion: a search needs the package optuna; allowed: pip install 'dlion-sim[search]'"


def test_trials_without_an_exchange_are_noted(capsys, monkeypatch, here):
    alone = "system={name: local_sgd, exchange: {period: 100000}}"
    write_sweep(here, HELD_OUT, alone, axes={"seed": [1]}, search={**SEARCH, "trials": 1})
    assert dlion(monkeypatch, "sweep", "sweep.yaml", "--output", "out", "--jobs", "1") == 0
    (row,) = (line.split("│") for line in capsys.readouterr().out.splitlines() if line.startswith("│"))
    assert row[-2].strip() == "no exchange"


def test_the_command_finds_files_of_the_base_from_anywhere(tmp_path):
    base = Base(tmp_path / "base.yaml", {})
    base.file.touch()
    values = {"cluster.wan.bandwidth": {"trace": "link.csv"}, "prices.catalog": "aws-skypilot", "modules": "own"}
    command = _command(Point("best", base, {}, values, tmp_path / "sweep.yaml"))
    link = f'{{"trace": "{tmp_path}/link.csv"}}'
    assert command.endswith(
        f"--set 'cluster.wan.bandwidth={link}' --set prices.catalog=aws-skypilot --set modules={tmp_path}/own"
    )
