"""`python -m emulation.validate` with runs that are made up; tests/emulation/test_emulate.py validates for real."""

import os
import signal
from types import SimpleNamespace

import pandas as pd
import pytest

from dlion_sim.analysis import compare
from dlion_sim.errors import InputError
from dlion_sim.scenario import dump
from dlion_sim.studies.validation import write_comparison
from emulation import validate as script
from tests.analysis.test_fidelity import written
from tests.simulation.scenarios import digits


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Three scenarios, which `validate` is as if it did, and the names of those that it was asked for.

    What is in `does` is called instead, by name; what is in `endings` is how the real run ends.
    """
    scenarios, output = tmp_path / "scenarios", tmp_path / "output"
    scenarios.mkdir()
    for name in ("one", "other", "third"):
        (scenarios / f"{name}.yaml").write_text(dump(digits(f"name={name}")))
    asked, does, endings = [], {}, {}

    def validate(scenario, folder, *, force, **_):
        asked.append(scenario.name)
        does.get(scenario.name, lambda: None)()
        ending = {"status": "completed", "stopped_by": "duration", **endings.get(scenario.name, {})}
        simulated = written(folder / f"simulated-{len(asked)}")
        late = {"computations": 20, "late": 1, "seconds_late": 0.1, "most_seconds_late": 0.1}
        real = written(folder / f"real-{len(asked)}", period=1.01, ending=ending, late=late, way="emulate")
        return write_comparison(simulated, real, folder)

    monkeypatch.setattr(script, "validate", validate)
    monkeypatch.setattr(script, "check_requirements", lambda: None)
    run = lambda *more: script.main([str(scenarios), "--output", str(output), *more])  # noqa: E731
    return SimpleNamespace(scenarios=scenarios, output=output, asked=asked, does=does, endings=endings, run=run)


def test_a_folder_is_validated_once(folders, capsys):
    assert folders.run() == 0
    assert folders.run() == 0
    assert folders.asked == ["one", "other", "third"]
    output = capsys.readouterr()
    assert "2 of 3: other" in output.err
    assert output.out.count("| `one` | 3 | 1.0% |") == 2
    assert "| 3 of 3 within 5.0% |" in output.out
    assert (folders.output / "fidelity.md").read_text() in output.out
    table = pd.read_csv(folders.output / "fidelity.csv", keep_default_na=False)
    assert table["system"].tolist() == ["dlion"] * 3
    assert table["iteration_median"].tolist() == pytest.approx([0.01] * 3)
    assert table["late"].tolist() == pytest.approx([0.1 / 10.1] * 3)


def test_what_was_interrupted_is_done_anew_and_the_rest_too(folders, capsys):
    folders.does["other"] = lambda: os.kill(os.getpid(), signal.SIGINT)
    assert folders.run() == 130
    assert folders.asked == ["one", "other"]
    output = capsys.readouterr().out
    assert "| `other` | 3 | not run |" in output
    assert "Not in the distribution: 2 of 3" in output
    folders.does.clear()
    assert folders.run() == 0
    assert folders.asked == ["one", "other", "other", "third"]


def raising(error):
    def do():
        raise error

    return do


@pytest.mark.parametrize("error", [InputError("node 0 could not start"), RuntimeError("node 0 could not start")])
def test_a_failure_is_told_stops_no_other_and_is_tried_again(folders, capsys, error):
    folders.does["other"] = raising(error)
    assert folders.run() == 1
    assert folders.asked == ["one", "other", "third"]
    assert "| `other` | 3 | failed: node 0 could not start |" in capsys.readouterr().out
    folders.does.clear()
    assert folders.run() == 0
    assert folders.asked[3:] == ["other"]
    assert "failed" not in capsys.readouterr().out


@pytest.mark.parametrize("ending", [{"status": "failed", "stopped_by": "lost: node 1"}, {"stopped_by": "stall"}])
def test_a_run_that_did_not_last_is_a_failure(folders, capsys, ending):
    folders.endings["one"] = ending
    assert folders.run() == 1
    output = capsys.readouterr().out
    assert f"| `one` | 3 | failed: emulate: {ending.get('status', 'completed')}, {ending['stopped_by']} |" in output


def test_comparisons_of_other_scenarios_are_not_taken_for_these(folders, capsys):
    assert folders.run() == 0
    (folders.scenarios / "one.yaml").write_text(dump(digits("name=one", "seed=7")))
    assert folders.run() == 2
    error = capsys.readouterr().err
    assert "output/one: holds another scenario's runs" in error
    assert len(folders.asked) == 3


def test_a_folder_without_scenarios_is_refused(folders, capsys):
    for file in folders.scenarios.iterdir():
        file.unlink()
    assert folders.run() == 2
    assert "holds no scenario" in capsys.readouterr().err


def test_another_metric_than_accuracy_is_refused_in_one_line(tmp_path, capsys):
    (tmp_path / "one.yaml").write_text(dump(digits("workload.dataset=diabetes")))
    assert script.main([str(tmp_path), "--output", str(tmp_path / "output")]) == 2
    [line] = capsys.readouterr().err.splitlines()
    words = "workload.dataset: is evaluated by rmse; allowed: one of accuracy; `dlion validate` takes any"
    assert line.endswith(f"{tmp_path / 'one.yaml'}: {words}")
    assert not (tmp_path / "output").exists()


def test_further_comparisons_are_made_where_they_are_missing(folders, capsys, monkeypatch):
    made = []

    def further(scenario, folder, interrupted):
        made.append(scenario.name)
        if made == ["one", "other"]:
            raise InputError("node 0 could not start")
        return compare(
            written(folder / f"first-{len(made)}"), written(folder / f"another-{len(made)}", period=1.02)
        ).verdict

    monkeypatch.setitem(script.FURTHER, "again", further)
    assert folders.run() == 0
    assert made == []
    assert folders.run("--also", "again") == 1
    output = capsys.readouterr()
    assert "  again: node 0 could not start" in output.err
    assert "| emulated again, median | 2.0% |" in output.out
    assert "failed" not in output.out
    assert folders.run("--also", "again") == 0
    assert made == ["one", "other", "third", "other"]
    assert len(folders.asked) == 3
    table = pd.read_csv(folders.output / "fidelity.csv", keep_default_na=False)
    assert table["iteration_median_again"].tolist() == pytest.approx([0.02] * 3)
    # What is emulated anew is compared anew.
    (folders.output / "third" / "fidelity.json").unlink()
    assert folders.run() == 0
    assert made[4:] == []
    assert folders.run("--also", "again") == 0
    assert made[4:] == ["third"]
