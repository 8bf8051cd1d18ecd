"""`dlion reproduce`: experiments of papers, run and judged."""

import re

import pandas as pd
import pytest

from dlion_sim import load
from dlion_sim.studies.reproduction import claims, repetition
from tests.command import dlion
from tests.sweep.scenarios import write_sweep

CLAIMS = """
E1:
  title: First
  repeats: A's figure 3
  paper: twice
  target: 0.99
  sure: no
  claims: [{says: Ako is better, of: {system: ako}, than: {system: baseline}}]
E2: {title: Second, repeats: none, paper: nothing, sure: no}
"""


@pytest.fixture
def here(tmp_path, monkeypatch, at_once):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    write_sweep(tmp_path, axes={"system": ["baseline", "ako"], "seed": [0, 1]}).rename(tmp_path / "E1.yaml")
    (tmp_path / "claims.yaml").write_text(CLAIMS)
    monkeypatch.setattr(repetition, "REPRODUCTION", tmp_path)
    monkeypatch.setattr(repetition, "TABLES", {"moshpit": repetition.TABLES["moshpit"]})
    monkeypatch.setattr(claims, "CLAIMS", tmp_path / "claims.yaml")
    return tmp_path


def test_without_a_name_the_experiments_are_listed(capsys, monkeypatch, here):
    assert dlion(monkeypatch, "reproduce") == 0
    listed = capsys.readouterr().out
    assert "First" in listed
    assert "Second" in listed
    assert "A's figure 3" in listed


def test_pages_are_rewritten_without_further_runs(capsys, monkeypatch, here):
    assert dlion(monkeypatch, "reproduce", "E1") == 0
    assert "4 runs: 4 to do" in capsys.readouterr().out
    assert len(list((here / "reproduction/runs/E1").glob("*/summary.json"))) == 4
    page = (here / "reproduction/E1/README.md").read_text()
    assert "Ako is better" in page
    assert "A's figure 3" in page
    assert "E1/README.md" in (collected := (here / "reproduction/README.md").read_text())
    assert "A's figure 3" in collected

    assert "Stand-in" not in page
    (here / "reproduction/E1/README.md").unlink()
    assert dlion(monkeypatch, "reproduce", "E1") == 0
    assert "4 runs: 4 done" in capsys.readouterr().out
    assert (here / "reproduction/E1/README.md").read_text() == page


def test_a_table_without_runs_is_computed_and_stands_beside_experiments(capsys, monkeypatch, here):
    assert dlion(monkeypatch, "reproduce", "moshpit", "-q") == 0
    assert "15 of 15 numbers are as published" in (here / "reproduction/moshpit/README.md").read_text()
    assert "means of 100 seeds: 15 of 15" in (here / "reproduction/README.md").read_text()


def test_an_experiments_sweep_can_be_run_by_name(capsys, monkeypatch, here):
    assert dlion(monkeypatch, "sweep", "reproduction/E6", "-o", "out", "--dry-run", "-q") == 0
    assert dlion(monkeypatch, "sweep", "reproduction/E66", "-o", "out") == 2
    assert "allowed: reproduction/E6, " in capsys.readouterr().err
    assert dlion(monkeypatch, "sweep", "reproduction/claims", "-o", "out") == 2
    assert "nor a ready sweep of that name" in capsys.readouterr().err


def test_an_unknown_experiment_or_a_missing_sweep_is_one_line(capsys, monkeypatch, here):
    assert dlion(monkeypatch, "reproduce", "E3") == 2
    assert capsys.readouterr().err == "dlion: E3: no such experiment or table; allowed: E1, E2, moshpit\n"
    assert dlion(monkeypatch, "reproduce", "E2") == 2
    assert "E2.yaml: no such sweep" in capsys.readouterr().err
    assert not (here / "reproduction").exists()


def test_output_and_runs_set_the_folders(capsys, monkeypatch, here):
    assert dlion(monkeypatch, "reproduce", "E1", "--short", "-o", "pages", "--runs", "elsewhere", "-q") == 0
    assert (here / "pages/E1-short/README.md").is_file()
    assert len(list((here / "elsewhere/E1-short").glob("*/summary.json"))) == 2
    assert not (here / "reproduction").exists()


def test_a_dry_run_counts_the_runs_and_writes_nothing(capsys, monkeypatch, here):
    assert dlion(monkeypatch, "reproduce", "E1", "--dry-run") == 0
    assert re.search(r"E1 .* First .* 4 .* 4 .* about \d+ m?s", capsys.readouterr().out)
    assert dlion(monkeypatch, "reproduce", "E1", "--dry-run", "--short") == 0
    assert re.search(r"E1-short .* First \(short\) .* 2 .* 2 ", capsys.readouterr().out)
    (here / "E2.yaml").write_text((here / "E1.yaml").read_text())
    assert dlion(monkeypatch, "reproduce", "--dry-run") == 0
    assert re.search(r"E1 .*\n.*E2 ", capsys.readouterr().out)
    assert not (here / "reproduction").exists()


def test_a_short_run_has_one_seed_a_tenth_of_the_time_and_marked_verdicts(capsys, monkeypatch, here):
    assert dlion(monkeypatch, "reproduce", "E1", "--short") == 0
    assert "2 runs: 2 to do" in capsys.readouterr().out
    runs = load("reproduction/runs/E1-short")
    assert set(runs.summaries["seed"]) == {0}
    assert runs.summaries["virtual_seconds"].tolist() == pytest.approx([0.1, 0.1])
    assert runs.evaluations.groupby("run")["virtual_time"].nunique().min() >= 6
    page = (here / "reproduction/E1-short/README.md").read_text()
    assert "# E1-short: First (short)" in page
    assert "**Different here**: Short: one seed, and 1/10 of each run's duration." in page
    assert "`dlion reproduce E1 --short`" in page
    directions = pd.read_csv(here / "reproduction/E1-short/verdicts.csv")["direction"]
    assert directions.str.contains("short").all()
    collected = (here / "reproduction/README.md").read_text()
    assert re.search(r"E1-short.*1 \w+ \(one seed, short\)", collected)

    # The whole one is apart from it.
    assert dlion(monkeypatch, "reproduce", "E1") == 0
    assert "4 runs: 4 to do" in capsys.readouterr().out
    assert "short" not in (here / "reproduction/E1/README.md").read_text()


def test_a_missing_data_set_is_one_line_before_any_run(capsys, monkeypatch, here):
    write_sweep(here, axes={"system": ["baseline", "ako"], "workload.dataset": ["mnist", "cifar10"]}).rename("E2.yaml")
    monkeypatch.setenv("DLION_DATA", str(here / "nowhere"))
    for command in (["reproduce", "E1", "E2"], ["sweep", "E2.yaml", "-o", "reproduction"]):
        assert dlion(monkeypatch, *command) == 2
        told = capsys.readouterr().err.splitlines()
        assert len(told) == 1
        assert "E2.yaml: axes.workload.dataset: DLION_DATA is" in told[0]
        assert not list((here / "reproduction").glob("**/manifest.json"))
