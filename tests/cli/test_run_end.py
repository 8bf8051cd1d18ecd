"""Exit codes of commands that run a scenario."""

import pytest
import typer

from dlion_sim.cli.scenario_runs import report
from tests.made_up import made_up_run


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "250")


def test_divergence_has_its_own_exit_code(capsys, tmp_path):
    with pytest.raises(typer.Exit) as ended:
        report(made_up_run(tmp_path / "run", diverged=True), quiet=False)
    assert ended.value.exit_code == 3
    told = capsys.readouterr()
    assert told.out.count("% diverged") == 2
    assert "the accuracy says nothing of the system" in told.out
    (line,) = told.err.splitlines()
    assert line == "dlion: diverged: east/0, east/1; a lower learning rate may help"


@pytest.mark.parametrize(("status", "code"), [("failed", 1), ("interrupted", 130)])
def test_failure_and_interruption_take_precedence(capsys, tmp_path, status, code):
    with pytest.raises(typer.Exit) as ended:
        report(made_up_run(tmp_path / "run", diverged=True, status=status), quiet=True)
    assert ended.value.exit_code == code
    assert "dlion: diverged" in capsys.readouterr().err


def test_a_completed_run_exits_normally(capsys, tmp_path):
    report(made_up_run(tmp_path / "run"), quiet=True)
    assert capsys.readouterr() == ("", "")
