"""`dlion reproduce`: experiments of papers, run and judged."""

import pytest

from dlion_sim.reproduction import claims
from tests.command import dlion
from tests.sweep.scenarios import write_sweep

CLAIMS = """
E1: {title: First, paper: twice, sure: no, claims: [{says: Ako is better, of: {system: ako}, than: {system: baseline}}]}
E2: {title: Second, paper: nothing, sure: no}
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    write_sweep(tmp_path, axes={"system": ["baseline", "ako"], "seed": [0, 1]}).rename(tmp_path / "E1.yaml")
    (tmp_path / "claims.yaml").write_text(CLAIMS)
    monkeypatch.setattr(claims, "REPRODUCTION", tmp_path)
    monkeypatch.setattr(claims, "_CLAIMS", tmp_path / "claims.yaml")
    return tmp_path


def test_without_a_name_the_experiments_are_listed(capsys, monkeypatch, here):
    assert dlion(monkeypatch, "reproduce") == 0
    listed = capsys.readouterr().out
    assert "First" in listed
    assert "Second" in listed


def test_an_experiment_is_run_once_and_its_pages_are_written_each_time(capsys, monkeypatch, here):
    assert dlion(monkeypatch, "reproduce", "E1", "--runs", "runs") == 0
    assert "4 runs: 4 to do" in capsys.readouterr().out
    assert len(list((here / "runs/E1").glob("*/summary.json"))) == 4
    page = (here / "results/E1/README.md").read_text()
    assert "Ako is better" in page
    assert "E1/README.md" in (here / "results/README.md").read_text()

    (here / "results/E1/README.md").unlink()
    assert dlion(monkeypatch, "reproduce", "E1", "--runs", "runs") == 0
    assert "4 runs: 4 done" in capsys.readouterr().out
    assert (here / "results/E1/README.md").read_text() == page


def test_an_unknown_experiment_and_one_without_a_sweep_are_one_line(capsys, monkeypatch, here):
    assert dlion(monkeypatch, "reproduce", "E3") == 2
    assert capsys.readouterr().err == "dlion: E3: no such experiment; allowed: E1, E2\n"
    assert dlion(monkeypatch, "reproduce", "E2") == 2
    assert "E2.yaml: no such sweep" in capsys.readouterr().err
    assert not (here / "results").exists()
