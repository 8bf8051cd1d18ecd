"""`dlion compare`: which target it is by, what it makes of what is written, and what it notes."""

import io
import json

import pandas as pd
import pytest

from tests.command import dlion
from tests.made_up import made_up_run
from tests.report.sweeps import priced_run

ACCURACIES = (0.1, 0.3, 0.6, 0.8, 0.9)


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "250")


def compared(capsys, monkeypatch, *arguments):
    assert dlion(monkeypatch, "compare", *arguments) == 0
    return capsys.readouterr().out


def test_the_scenarios_own_target_is_the_default(capsys, monkeypatch, tmp_path):
    for seed in (0, 1):
        made_up_run(tmp_path / f"run{seed}", ACCURACIES, seed=seed, extra="target_accuracy: 0.7\n")
    told = compared(capsys, monkeypatch, tmp_path)
    assert "time to 70 %" in told
    assert "70 %: the scenario's own target" in told
    told = compared(capsys, monkeypatch, tmp_path, "--target", "0.5")
    assert "time to 50 %" in told
    assert "own target" not in told


def test_without_one_target_of_the_scenarios_it_is_the_best_that_half_reached(capsys, monkeypatch, tmp_path):
    made_up_run(tmp_path / "none", ACCURACIES)
    assert "90 %: the best that half of the completed runs reached" in compared(capsys, monkeypatch, tmp_path)
    made_up_run(tmp_path / "one", ACCURACIES, extra="target: 0.7\n")
    assert "70 %: the scenario's own target" in compared(capsys, monkeypatch, tmp_path)
    made_up_run(tmp_path / "other", ACCURACIES, extra="target: 0.5\n")
    assert "90 %: the best that half" in compared(capsys, monkeypatch, tmp_path)


@pytest.mark.parametrize("target", ["90", "90 %", "90%", "0.9"])
def test_an_accuracy_may_be_told_in_percent(capsys, monkeypatch, tmp_path, target):
    made_up_run(tmp_path / "run", ACCURACIES)
    assert "time to 90 %" in compared(capsys, monkeypatch, tmp_path, "--target", target)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("900", ["no accuracy is 900", "up to 100 %, e.g. 90, 90 % or 0.9"]),
        ("-3 %", ["no accuracy is -3 %", "up to 100 %"]),
        ("nan", ["'nan' is no number"]),
        ("much", ["'much' is no number", "e.g. 90, 90 % or 0.9"]),
        ("1", ["1 may be 1 % or all", "1 % or 100 %"]),
    ],
)
def test_what_is_no_accuracy_is_refused_in_percent(capsys, monkeypatch, tmp_path, target, words):
    made_up_run(tmp_path / "run", ACCURACIES)
    assert dlion(monkeypatch, "compare", tmp_path, f"--target={target}") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--target" in line
    assert all(word in line for word in words), line


def test_times_and_costs_of_runs_without_an_exchange_carry_the_mark(capsys, monkeypatch, tmp_path):
    made_up_run(tmp_path / "baseline", ACCURACIES, system="baseline")
    made_up_run(tmp_path / "diloco", ACCURACIES, system="diloco", exchanging=False)
    told = compared(capsys, monkeypatch, tmp_path, "--target", "90")
    rows = {line.split()[1]: [cell.strip() for cell in line.split("│")] for line in told.splitlines() if "│" in line}
    assert "40.0 !" in rows["diloco"]
    assert "1.00 (1) !" in rows["diloco"]
    assert "40.0" in rows["baseline"]


def test_it_says_on_how_many_samples_accuracies_are(capsys, monkeypatch, tmp_path):
    made_up_run(tmp_path / "run", ACCURACIES)
    assert "samples" not in compared(capsys, monkeypatch, tmp_path)
    file = tmp_path / "run" / "manifest.json"
    manifest = json.loads(file.read_text())
    file.write_text(json.dumps({**manifest, "evaluation_samples": {"curve": 100, "full": 360}}))
    told = compared(capsys, monkeypatch, tmp_path)
    assert "accuracy and time: on the first 100 of 360 samples" in told
    made_up_run(tmp_path / "other", ACCURACIES, system="ako")
    assert "on the first 100 of 360 samples in some runs" in compared(capsys, monkeypatch, tmp_path)


def test_runs_that_did_not_complete_are_noted(capsys, monkeypatch, tmp_path):
    for seed in (0, 1):
        status = "interrupted" if seed else "completed"
        made_up_run(tmp_path / f"dlion{seed}", ACCURACIES, seed=seed, status=status)
    told = compared(capsys, monkeypatch, tmp_path)
    assert "dlion !" in told
    assert "! in part interrupted: only completed runs count here" in told


def test_a_time_before_which_nothing_was_evaluated_is_a_bound(capsys, monkeypatch, tmp_path):
    """Its two evaluations are at 0 s and at its end; Baseline had four before the one that has it."""
    priced_run(tmp_path / "dlion", accuracies=(0.1, 0.9), every=40.0)
    priced_run(tmp_path / "baseline", accuracies=ACCURACIES, system="baseline")
    told = compared(capsys, monkeypatch, tmp_path, "--target", "90")
    rows = {line.split()[1]: [cell.strip() for cell in line.split("│")] for line in told.splitlines() if "│" in line}
    assert "<= 40.0" in rows["dlion"]
    assert "~ 1.00 (1)" in rows["dlion"]
    assert any(cell.startswith("<= 0.0") for cell in rows["dlion"])
    assert "40.0" in rows["baseline"]
    assert "<= an upper bound" in told


def test_seeds_that_got_there_at_one_evaluation_have_the_gap_before_it_for_an_interval(capsys, monkeypatch, tmp_path):
    for seed in (0, 1, 2):
        made_up_run(tmp_path / f"dlion{seed}", ACCURACIES, seed=seed)
    told = compared(capsys, monkeypatch, tmp_path, "--target", "90")
    assert "40.0 ± 10.0" in told
    assert "time: ± its 95 % t-interval, or the seconds between evaluations where these are more" in told


@pytest.mark.parametrize(("ways", "is_told"), [(("simulate", "live"), True), (("live",), False), (("emulate",), False)])
def test_live_runs_beside_others_are_said_to_have_another_network(capsys, monkeypatch, tmp_path, ways, is_told):
    for way in ways:
        made_up_run(tmp_path / way, ACCURACIES, way=way)
    told = compared(capsys, monkeypatch, tmp_path)
    note = "live: over the network of its hosts, loopback on one host, not the scenario's links as"
    assert (note in told) == is_told


def test_what_the_untrained_model_has_is_no_time(capsys, monkeypatch, tmp_path):
    made_up_run(tmp_path / "run", (0.5, 0.6, 0.7))
    told = compared(capsys, monkeypatch, tmp_path, "--target", "40")
    assert "before training" in told
    assert " 0.0 " not in told


@pytest.fixture
def many(tmp_path):
    """Runs of two systems whose table is wider than 80 columns."""
    for seed in (0, 1):
        priced_run(tmp_path / f"dlion{seed}", accuracies=ACCURACIES, seed=seed)
        priced_run(tmp_path / f"baseline{seed}", accuracies=ACCURACIES, system="baseline", seed=seed)
    return tmp_path


def test_a_narrow_terminal_has_the_columns_that_compare(capsys, monkeypatch, many):
    monkeypatch.setenv("COLUMNS", "80")
    printed = compared(capsys, monkeypatch, many)
    rows = [line for line in printed.splitlines() if "│" in line]
    assert [row.split()[1] for row in rows if not row.startswith("│  ")] == ["baseline", "dlion"]
    assert all(words in printed for words in ("accuracy", "time to", "speed-up"))
    assert max(map(len, rows)) <= 80
    assert "not shown in 80 columns: " in printed


def test_a_pipe_has_all_columns_on_one_line_each(capsys, monkeypatch, many):
    monkeypatch.delenv("COLUMNS")
    printed = compared(capsys, monkeypatch, many)
    assert "not shown" not in printed
    (row,) = [line for line in printed.splitlines() if "│ baseline" in line]
    assert len(row) > 100


def test_as_csv_json_and_markdown(capsys, monkeypatch, many):
    printed = {
        kind: compared(capsys, monkeypatch, many, "--target", "90", "--format", kind)
        for kind in ("csv", "json", "markdown")
    }
    rows = pd.read_csv(io.StringIO(printed["csv"]))
    assert rows["system"].tolist() == ["baseline", "dlion"]
    assert rows["target"].tolist() == [0.9, 0.9]
    assert rows["time"].tolist() == [40.0, 40.0]
    assert [row["cost"] for row in json.loads(printed["json"])] == pytest.approx(rows["cost"].tolist())
    table = [line for line in printed["markdown"].splitlines() if line.startswith("|")]
    assert len(table) == 4
    assert len({line.count("|") for line in table}) == 1
