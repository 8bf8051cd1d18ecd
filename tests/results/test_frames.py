"""Runs are found, named and put into tables."""

import math
from pathlib import Path

import pytest

from dlion_sim.errors import InputError
from dlion_sim.results import Frames, LinksRow, MetricsRow, RunWriter, find_runs, run_names
from tests.made_up import made_up_run


def run_folder(folder: Path, *, seed: int = 0, finished: bool = True, rows: int = 2, **manifest: object) -> Path:
    names = {"scenario": "made-up", "system": "dlion", "seed": seed}
    writer = RunWriter.create(folder, scenario_yaml="name: made-up\n", manifest={**names, **manifest})
    for number in range(1, rows + 1):
        writer.append(MetricsRow(number, number, 0, "iteration", number, 1.0, batch_size=8, compute_seconds=0.5))
        writer.append(MetricsRow(number, number, 0, "evaluation", number, 1.0, 0.5))
        writer.append(LinksRow(number, 0, 1, 100, 1, 1))
    writer.flush()
    if finished:
        summary = {
            **names,
            "status": "completed",
            "accuracy": {"mean": 0.5, "std": 0.0, "per_worker": [0.5]},
            "iterations": {"mean": 2.0, "per_worker": [2]},
            "time_to_accuracy": {"0.5": 1.0, "0.6": None},
            "bytes_sent": 200,
        }
        writer.finish(summary)
    return folder


def test_runs_are_found_at_any_depth_in_natural_order(tmp_path: Path) -> None:
    folders = [run_folder(tmp_path / name) for name in ("a/seed2", "a/seed10", "b/c/seed1")]
    (tmp_path / "empty").mkdir()
    assert find_runs([tmp_path]) == folders
    assert find_runs([folders[2], tmp_path]) == [folders[2], *folders[:2]]
    assert run_names(folders) == ["a/seed2", "a/seed10", "b/c/seed1"]
    assert run_names(folders[:2]) == ["seed2", "seed10"]
    assert run_names(folders[:1]) == ["seed2"]


def test_a_path_without_a_run_is_refused(tmp_path: Path) -> None:
    run_folder(tmp_path / "run")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="holds no run") as refusal:
        find_runs([tmp_path / "run", tmp_path / "empty"])
    assert refusal.value.file == tmp_path / "empty"
    with pytest.raises(InputError, match="is not a run folder"):
        find_runs([tmp_path / "missing"])


def test_tables_identify_the_run_of_each_row(tmp_path: Path) -> None:
    run_folder(tmp_path / "a", seed=1, evaluated_on="validation", sweep={"point": {"cluster.wan.bandwidth": "20 Mbps"}})
    run_folder(tmp_path / "b", seed=2, finished=False)
    run_folder(tmp_path / "c", rows=0)
    frames = Frames.of([tmp_path])
    first = ["run", "scenario", "system", "seed"]
    for table in (frames.summaries, frames.evaluations, frames.iterations, frames.links):
        assert list(table.columns[:4]) == first
    assert frames.evaluations[["run", "seed"]].value_counts().to_dict() == {("a", 1): 2, ("b", 2): 2}
    assert frames.evaluations.groupby("run")["evaluated_on"].unique().str.join("").to_dict() == {
        "a": "validation",
        "b": "test",
    }
    assert "kind" not in frames.iterations
    assert frames.links["bytes"].sum() == 400
    summaries = frames.summaries.set_index("run")
    assert summaries["status"].tolist() == ["completed", "running", "completed"]
    assert summaries.loc["a", "bandwidth"] == "20 Mbps"
    assert summaries.loc["a", ["accuracy", "iterations", "time_to_0.5"]].tolist() == [0.5, 2.0, 1.0]
    assert summaries["accuracy"].isna().tolist() == [False, True, False]


def test_totals_of_packets_are_columns(tmp_path: Path) -> None:
    made_up_run(tmp_path / "dlcp", lossy=True)
    made_up_run(tmp_path / "flows", extra="network: flows")
    frames = Frames.of([tmp_path])
    summaries = frames.summaries.set_index("run")
    told = ["lost_share", "saved_share", "completion_mean", "completion_p99"]
    assert summaries.loc["dlcp", told].tolist() == [0.1, 0.04, 0.2, 0.75]
    assert summaries.loc["flows", told].isna().all()
    assert set(frames.parts["run"]) == set(frames.queues["run"]) == {"dlcp"}
    assert frames.queues["port"].nunique() == 3
    made_up_run(tmp_path / "alone")
    assert Frames.of([tmp_path / "alone"]).parts.empty


def test_totals_of_availability_are_columns(tmp_path: Path) -> None:
    made_up_run(tmp_path / "away", absent=True)
    made_up_run(tmp_path / "there", seed=2)
    frames = Frames.of([tmp_path])
    summaries = frames.summaries.set_index("run")
    told = ["up_share", "useful_share", "to_notice", "to_join"]
    assert summaries.loc["away", told].tolist() == [0.95, 0.75, 0.25, 0.5]
    assert summaries.loc["there", told].isna().all()
    assert frames.membership[["run", "what"]].values.tolist()[-1] == ["away", "joined"]


def test_times_are_numbers_and_axes_have_the_sweeps_names(tmp_path: Path) -> None:
    point = {"system.exchange.kind": "full", "system.batching.kind": "fixed", "cluster.wan.rtt": "5 ms", "seed": "1"}
    run_folder(tmp_path / "a", seed=1, sweep={"point": point})
    run_folder(tmp_path / "b", seed=2)
    summaries = Frames.of([tmp_path]).summaries
    assert [summaries[f"time_to_{each}"].dtype for each in (0.5, 0.6)] == ["float64", "float64"]
    assert summaries["time_to_0.6"].isna().all()
    assert summaries["seed"].tolist() == [1, 2]
    assert {"exchange.kind", "batching.kind", "rtt"} <= set(summaries.columns)
    assert not set(point) & set(summaries.columns) - {"seed"}


def test_runs_without_rows_have_empty_tables(tmp_path: Path) -> None:
    run_folder(tmp_path / "a", rows=0)
    frames = Frames.of([tmp_path])
    assert frames.evaluations.empty
    assert "accuracy" in frames.evaluations.columns


def test_a_run_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (run_folder(tmp_path / "a") / "summary.json").write_text("{")
    with pytest.raises(InputError, match="cannot be read") as refusal:
        Frames.of([tmp_path])
    assert refusal.value.file == tmp_path / "a" / "summary.json"


def test_times_are_of_trained_models_and_have_lower_bounds(tmp_path: Path) -> None:
    made_up_run(tmp_path / "run", (0.25, 0.55, 0.65))
    (row,) = Frames.of([tmp_path]).summaries.to_dict("records")
    assert (row["time_to_0.5"], row["not_before_0.5"]) == (10.0, 0.0)
    assert (row["time_to_0.6"], row["not_before_0.6"]) == (20.0, 10.0)
    assert row["reached_untrained"] == 0.2
    assert math.isnan(row["time_to_0.2"])
    assert math.isnan(row["time_to_0.7"])


def test_every_table_has_the_settings_in_which_runs_differ(tmp_path: Path) -> None:
    for name, rate, nic in (("slow", 0.05, "20 Mbps"), ("fast", 0.1, "20 Mbps"), ("far", 0.1, "5 Mbps")):
        extra = f"workload: {{batch_size: 8, optimizer: {{learning_rate: {rate}}}}}\nworkers: [{{nic: {nic}}}]\n"
        made_up_run(tmp_path / name, extra=extra, lossy=True)
        made_up_run(tmp_path / f"{name}-again", extra=extra, seed=1)
    frames = Frames.of([tmp_path])
    for table in (frames.summaries, frames.evaluations, frames.iterations, frames.links, frames.transfers):
        rates = table.groupby("run")[["learning_rate", "nic"]].first()
        assert rates.loc["slow"].tolist() == [0.05, "20 Mbps"]
        assert rates.loc["far"].tolist() == [0.1, "5 Mbps"]
        assert table["learning_rate"].dtype == float
        assert not {"workload.batch_size", "name"} & set(table.columns)
    assert "batch_size" not in frames.summaries  # as it is the same in all


def test_settings_that_depend_on_the_system_are_no_columns(tmp_path: Path) -> None:
    for system, more in (("dlion", "n_min: 10"), ("ako", "partitions: 4")):
        for period in (1, 2):
            exchange = f"{{name: {system}, exchange: {{{more}, period: {period}}}}}"
            made_up_run(tmp_path / f"{system}{period}", system=system, extra=f"system: {exchange}\n")
    made_up_run(tmp_path / "other", scenario="another", extra="workload: {dataset: digits}\n")
    columns = Frames.of([tmp_path]).summaries.columns
    assert "period" in columns
    assert not {"n_min", "partitions", "dataset"} & set(columns)


def test_a_column_of_a_table_keeps_its_name_beside_a_setting_of_that_name(tmp_path: Path) -> None:
    for size in (8, 16):
        made_up_run(tmp_path / f"{size}", extra=f"workload: {{batch_size: {size}}}\nclouds: {[1] * size}\n")
    frames = Frames.of([tmp_path])
    assert frames.summaries["batch_size"].tolist() == frames.summaries["clouds"].tolist() == [8, 16]
    assert set(frames.iterations["workload.batch_size"]) == {8, 16}


def test_caveats_are_a_column(tmp_path: Path) -> None:
    made_up_run(tmp_path / "sound")
    made_up_run(tmp_path / "bad", exchanging=False, diverged=True, status="interrupted", seed=1)
    notes = Frames.of([tmp_path]).summaries.set_index("run")["note"]
    assert notes.to_dict() == {"sound": "", "bad": "no exchange, diverged, interrupted"}


def test_hostile_scenarios_are_compared_quickly(tmp_path: Path) -> None:
    nested = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 5))  # 20 thousand values
    for name in "xy":
        made_up_run(tmp_path / name, extra=f"a0: &a0 [{name}, {name}, {name}]\n{nested}")
    assert 50 <= len(Frames.of([tmp_path]).links.columns) < 100
