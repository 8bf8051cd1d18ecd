"""`dlion validate` of two run folders; with an emulation it is tested in tests/emulation."""

import json

import pytest

from dlion_sim.simulation import simulate
from tests.command import dlion
from tests.simulation.scenarios import digits


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    simulate(digits(), folder / "one")
    simulate(digits("system=baseline"), folder / "other")
    simulate(digits("system=diloco"), folder / "alone")
    return folder


def validate(monkeypatch, *arguments):
    return dlion(monkeypatch, "validate", *arguments)


def test_two_runs_are_compared(runs, tmp_path, monkeypatch, capsys):
    assert validate(monkeypatch, runs / "one", runs / "one", "--output", tmp_path / "same") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "iteration time 0.0%, iterations 0.0%, bytes of a link 0.0%, accuracy 0.0 points at the end" in said
    found = json.loads((tmp_path / "same" / "fidelity.json").read_text())
    assert found["verdict"]["iteration_median"] == 0
    assert (tmp_path / "same" / "fidelity.png").stat().st_size > 1000


def test_differences_are_written(runs, tmp_path, monkeypatch):
    assert validate(monkeypatch, runs / "one", runs / "other", "--output", tmp_path / "apart", "-q") == 0
    verdict = json.loads((tmp_path / "apart" / "fidelity.json").read_text())["verdict"]
    assert verdict["iteration_median"] > 0.5
    assert verdict["bytes"] > 0.1


def test_runs_without_an_exchange_are_reported(runs, tmp_path, monkeypatch, capsys):
    """DiLoCo's workers are on their own for 500 iterations."""
    assert validate(monkeypatch, runs / "alone", runs / "alone", "--output", tmp_path / "alone") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "median iteration time 0.0%, iterations 0.0%, accuracy 0.0 points at the end" in said
    assert "nothing was exchanged" in said
    assert "nan" not in said
    assert json.loads((tmp_path / "alone" / "fidelity.json").read_text())["verdict"]["bytes"] is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("one", "other", "third"), "3 arguments; allowed: a scenario, or two run folders and neither --set nor"),
        (("nowhere", "one"), "nowhere: is not a run folder"),
        (("no_such_scenario",), "no_such_scenario"),
    ],
)
def test_bad_input_is_one_line(runs, arguments, said, monkeypatch, capsys):
    monkeypatch.chdir(runs)
    assert validate(monkeypatch, *arguments) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
