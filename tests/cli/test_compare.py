"""`dlion compare`: target, columns, notes and formats."""

import io
import json
from pathlib import Path

import pandas as pd
import pytest

from tests.command import dlion
from tests.made_up import made_up_run
from tests.report.sweeps import begun_run, priced_run

ACCURACIES = (0.1, 0.3, 0.6, 0.8, 0.9)


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "250")


def compared(capsys, monkeypatch, *arguments):
    assert dlion(monkeypatch, "compare", *arguments) == 0
    return capsys.readouterr().out


def test_the_scenarios_target_is_the_default(capsys, monkeypatch, tmp_path):
    for seed in (0, 1):
        made_up_run(tmp_path / f"run{seed}", ACCURACIES, seed=seed, extra="target_accuracy: 0.7\n")
    told = compared(capsys, monkeypatch, tmp_path)
    assert "time to 70 %" in told
    assert "70 %: the scenario's own target" in told
    told = compared(capsys, monkeypatch, tmp_path, "--target", "0.5")
    assert "time to 50 %" in told
    assert "own target" not in told


def test_without_a_common_target_it_is_the_best_that_half_reached(capsys, monkeypatch, tmp_path):
    made_up_run(tmp_path / "none", ACCURACIES)
    assert "90 %: the best that half of the completed runs reached" in compared(capsys, monkeypatch, tmp_path)
    made_up_run(tmp_path / "one", ACCURACIES, extra="target: 0.7\n")
    assert "70 %: the scenario's own target" in compared(capsys, monkeypatch, tmp_path)
    made_up_run(tmp_path / "other", ACCURACIES, extra="target: 0.5\n")
    assert "90 %: the best that half" in compared(capsys, monkeypatch, tmp_path)


@pytest.mark.parametrize("target", ["90", "90 %", "90%", "0.9"])
def test_the_target_may_be_in_percent(capsys, monkeypatch, tmp_path, target):
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
def test_a_bad_target_is_one_line(capsys, monkeypatch, tmp_path, target, words):
    made_up_run(tmp_path / "run", ACCURACIES)
    assert dlion(monkeypatch, "compare", tmp_path, f"--target={target}") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--target" in line
    assert all(word in line for word in words), line


def cells(table):
    """The cells of each row, by system."""
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in table.splitlines() if line.startswith("│")]
    return {row[0].removesuffix(" !"): row for row in rows}


def test_runs_without_an_exchange_are_marked(capsys, monkeypatch, tmp_path):
    made_up_run(tmp_path / "baseline", ACCURACIES, system="baseline")
    made_up_run(tmp_path / "diloco", ACCURACIES, system="diloco", exchanging=False)
    told = compared(capsys, monkeypatch, tmp_path, "--target", "90")
    assert {"diloco !", "40.0 !", "1.00 (1) !"} <= {*cells(told)["diloco"]}
    assert "40.0" in cells(told)["baseline"]
    assert "! a worker never exchanged anything" in told
    assert "is the run too short for an exchange?" in told


def test_partial_evaluation_is_noted(capsys, monkeypatch, tmp_path):
    made_up_run(tmp_path / "run", ACCURACIES)
    assert "samples" not in compared(capsys, monkeypatch, tmp_path)
    file = tmp_path / "run" / "manifest.json"
    manifest = json.loads(file.read_text())
    file.write_text(json.dumps({**manifest, "evaluation_samples": {"curve": 100, "full": 360}}))
    told = compared(capsys, monkeypatch, tmp_path)
    assert "accuracy and time: on the first 100 of 360 samples" in told
    made_up_run(tmp_path / "other", ACCURACIES, system="ako")
    assert "on the first 100 of 360 samples in some runs" in compared(capsys, monkeypatch, tmp_path)


def test_incomplete_runs_are_noted(capsys, monkeypatch, tmp_path):
    for seed in (0, 1):
        status = "interrupted" if seed else "completed"
        made_up_run(tmp_path / f"dlion{seed}", ACCURACIES, seed=seed, status=status)
    told = compared(capsys, monkeypatch, tmp_path)
    assert "dlion !" in told
    assert "! in part interrupted: only completed runs count here" in told


@pytest.mark.parametrize("command", [("compare",), ("plot", "accuracy", "-o", "all.png"), ("report", "-o", "all.html")])
def test_a_run_that_did_not_end_is_named_with_the_command_that_continues_it(capsys, monkeypatch, tmp_path, command):
    monkeypatch.chdir(tmp_path)
    whole = made_up_run(Path("runs/whole"), ACCURACIES)
    begun_run(whole, Path("runs/killed"), until=20.0).close()
    begun_run(whole, Path("runs/early"), until=10.0).close()
    Path("runs/killed/checkpoint.pt").touch()
    assert dlion(monkeypatch, *command, "runs") == 0
    assert capsys.readouterr().err.splitlines() == [
        "dlion: runs/early did not end (killed, or still in progress); it has no checkpoint to continue from",
        "dlion: runs/killed did not end (killed, or still in progress); dlion run --resume runs/killed continues it",
    ]


def test_of_runs_none_of_which_ended_compare_names_how_to_continue(capsys, monkeypatch, tmp_path):
    made_up_run(tmp_path / "run", ACCURACIES, status="interrupted")
    (tmp_path / "run/checkpoint.pt").touch()
    assert dlion(monkeypatch, "compare", tmp_path) == 2
    told = capsys.readouterr().err
    assert f"{tmp_path}/run was interrupted; dlion run --resume {tmp_path}/run continues it" in told
    assert "none of the runs is completed" in told


def test_a_time_after_a_long_gap_is_a_bound(capsys, monkeypatch, tmp_path):
    """Its two evaluations are at 0 s and at its end; Baseline had four before the one that has it."""
    priced_run(tmp_path / "dlion", accuracies=(0.1, 0.9), every=40.0)
    priced_run(tmp_path / "baseline", accuracies=ACCURACIES, system="baseline")
    told = compared(capsys, monkeypatch, tmp_path, "--target", "90")
    rows = cells(told)
    assert "<= 40.0" in rows["dlion"]
    assert "~ 1.00 (1)" in rows["dlion"]
    assert any(cell.startswith("<= 0.0") for cell in rows["dlion"])
    assert "40.0" in rows["baseline"]
    assert "<= an upper bound" in told


def test_the_interval_of_times_covers_the_gap_between_evaluations(capsys, monkeypatch, tmp_path):
    for seed in (0, 1, 2):
        made_up_run(tmp_path / f"dlion{seed}", ACCURACIES, seed=seed)
    told = compared(capsys, monkeypatch, tmp_path, "--target", "90")
    assert "40.0 ± 10.0" in told
    assert "time: ± its 95 % t-interval, or the seconds between evaluations where these are more" in told


@pytest.mark.parametrize(("ways", "is_told"), [(("simulate", "live"), True), (("live",), False), (("emulate",), False)])
def test_live_runs_among_others_are_noted(capsys, monkeypatch, tmp_path, ways, is_told):
    for way in ways:
        made_up_run(tmp_path / way, ACCURACIES, way=way)
    told = compared(capsys, monkeypatch, tmp_path)
    note = "live: over the network of its hosts, loopback on one host, not the scenario's links as"
    assert (note in told) == is_told


def test_a_target_of_the_untrained_model_has_no_time(capsys, monkeypatch, tmp_path):
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


def test_a_narrow_terminal_shows_the_important_columns(capsys, monkeypatch, many):
    monkeypatch.setenv("COLUMNS", "80")
    printed = compared(capsys, monkeypatch, many)
    rows = [line for line in printed.splitlines() if "│" in line]
    assert [row.split()[1] for row in rows if not row.startswith("│  ")] == ["baseline", "dlion"]
    assert all(words in printed for words in ("accuracy", "time to", "speed-up"))
    assert max(map(len, rows)) <= 80
    assert "not shown in 80 columns: " in printed


def test_a_pipe_shows_all_columns(capsys, monkeypatch, many):
    monkeypatch.delenv("COLUMNS")
    printed = compared(capsys, monkeypatch, many)
    assert "not shown" not in printed
    (row,) = [line for line in printed.splitlines() if "│ baseline" in line]
    assert len(row) > 100


def test_csv_json_and_markdown_have_the_same_rows(capsys, monkeypatch, many):
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


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_targets_of_a_sweep_have_a_column_of_their_own(capsys, monkeypatch, tmp_path, kind):
    for target in (0.8, 0.9):
        made_up_run(tmp_path / f"{target}", ACCURACIES, extra=f"target: {target}\n", point={"target": f"{target}"})
    printed = compared(capsys, monkeypatch, tmp_path, "--target", "85", "--format", kind)
    rows = pd.read_csv(io.StringIO(printed)) if kind == "csv" else pd.DataFrame(json.loads(printed))
    assert rows["target"].tolist() == [0.85, 0.85]
    assert sorted(rows["scenario.target"].astype(float)) == [0.8, 0.9]


def test_the_evaluation_set_is_named(capsys, monkeypatch, tmp_path):
    def headings(table):
        return set(table.split("┡")[0].replace("┃", " ").split())

    made_up_run(tmp_path / "plain")
    assert {"test", "accuracy"} <= headings(compared(capsys, monkeypatch, tmp_path))
    made_up_run(tmp_path / "tuned", extra="validation: 0.1\n", evaluated_on="validation")
    assert {"validation", "accuracy"} <= headings(compared(capsys, monkeypatch, tmp_path / "tuned"))
    both = compared(capsys, monkeypatch, tmp_path)
    assert "evaluated on" in both
    assert not {"test", "validation"} & headings(both)
    assert [{"test", "validation"} & set(line.split()) for line in both.splitlines() if "dlion" in line] == [
        {"test"},
        {"validation"},
    ]


def test_a_row_is_a_group(capsys, monkeypatch, tmp_path):
    for seed in (0, 1):
        made_up_run(tmp_path / f"baseline-{seed}", (0.1, 0.3, 0.6), system="baseline", seed=seed)
        made_up_run(tmp_path / f"dlion-{seed}", (0.1, 0.6, 0.8 + 0.1 * seed), seed=seed)
    table = compared(capsys, monkeypatch, tmp_path, "--target", "0.6")
    assert [*cells(table)] == ["baseline", "dlion"]
    # A t-interval over two seeds: 12.7 times the standard error.
    assert {"72.5 ± 31.8", "85.0", "<= 10.0", "~ 2.00 (2)", "4 MB"} <= {*cells(table)["dlion"]}
    assert {"1.00", "ref."} <= {*cells(table)["baseline"]}
    assert "time to 60 %" in table
    assert "mean of the last 2 evaluations" in table


def test_packets_have_columns(capsys, monkeypatch, tmp_path):
    made_up_run(tmp_path / "baseline", system="baseline")
    assert "completion" not in compared(capsys, monkeypatch, tmp_path)
    made_up_run(tmp_path / "lossy", extra="transport: dlcp\n", lossy=True)
    table = compared(capsys, monkeypatch, tmp_path)
    lost = {system: row[-6:-3] for system, row in cells(table).items()}
    assert [row[-5:-2] for row in cells(table).values()] == [["-"] * 3, ["10 %", "0.2", "0.75"]], lost
    assert "that receivers did without" in table


def test_outages_have_columns(capsys, monkeypatch, tmp_path):
    made_up_run(tmp_path / "always", system="baseline")
    assert "goodput" not in compared(capsys, monkeypatch, tmp_path)
    made_up_run(tmp_path / "away", absent=True)
    table = compared(capsys, monkeypatch, tmp_path)
    assert all(word in table for word in ("up", "goodput: samples per second", "work lost", "fetched", "rejoins"))
    assert cells(table)["dlion"][-7:-2] == ["95.0", "3.75", "0.25", "4 kB", "0.5"]
    assert cells(table)["baseline"][-7:-2] == ["100.0", "5", "0", "0 B", "-"]


def test_bounds_and_significance_are_written(capsys, monkeypatch, tmp_path):
    for seed in range(3):
        made_up_run(tmp_path / f"b{seed}", (0.1, 0.2, 0.7, 0.7, 0.7), system="baseline", seed=seed)
        made_up_run(tmp_path / f"d{seed}", (0.1, 0.7, 0.7, 0.7, 0.7 - 0.01 * seed), seed=seed)
        made_up_run(tmp_path / f"h{seed}", (0.1, 0.7, 0.7 - 0.3 * seed, 0.1, 0.1), system="hop", seed=seed)
        made_up_run(tmp_path / f"a{seed}", (0.1, 0.3 + 0.01 * seed, 0.3, 0.3, 0.3), system="ako", seed=seed)
        last = 0.65 if seed else 0.7
        made_up_run(tmp_path / f"g{seed}", (0.1, 0.3, 0.4, 0.5, last), system="gaia", seed=seed)
    table = compared(capsys, monkeypatch, tmp_path, "--target", "0.7")
    rows = cells(table)
    assert rows["ako"][4:6] == ["> 40.0 (0 of 3)", "< 0.50 (3)"]
    assert rows["gaia"][4] == "> 40.0 (1 of 3)"
    assert rows["dlion"][6] == "0.225"
    assert rows["gaia"][6].endswith("*")
    assert "Holm" in table
    assert "restricted mean" in table


def test_an_unreadable_run_is_named_and_the_others_are_shown(capsys, monkeypatch, tmp_path):
    made_up_run(tmp_path / "baseline", system="baseline")
    made_up_run(tmp_path / "dlion")
    (tmp_path / "dlion" / "summary.json").write_text("")
    assert dlion(monkeypatch, "compare", tmp_path) == 1
    output = capsys.readouterr()
    assert "baseline" in output.out
    (line,) = output.err.splitlines()
    assert "dlion/summary.json: cannot be read" in line


def test_wan_bytes_come_first_and_until_the_target(capsys, monkeypatch, tmp_path):
    clouds = ("east", "east", "west")
    made_up_run(tmp_path / "b", (0.1, 0.2, 0.6), system="baseline", workers=3, clouds=clouds)
    made_up_run(tmp_path / "d", (0.1, 0.6, 0.7), workers=3, clouds=clouds)
    table = compared(capsys, monkeypatch, tmp_path, "--target", "0.5")
    assert [row[-3:] for row in cells(table).values()] == [["4 MB", "4 MB", "4 MB"], ["4 MB", "<= 2 MB", "4 MB"]]
    assert "WAN bytes: from one micro-cloud to another" in table
