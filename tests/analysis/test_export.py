"""Runs for other tools: what is written is what those read."""

import json
import sys

import pandas as pd
import pytest

from dlion_sim.analysis.export import export_csv, export_tensorboard, export_trace
from dlion_sim.errors import InputError
from dlion_sim.results import MetricsRow, Run, RunWriter, TransfersRow
from tests.made_up import made_up_run


@pytest.fixture
def runs(tmp_path):
    return tuple(made_up_run(tmp_path / f"runs/seed{seed}", (0.1, 0.5, 0.6), seed=seed) for seed in (0, 1))


def test_csv_files_read_as_the_tables(runs, tmp_path):
    export_csv(runs, tmp_path / "out")
    tables = {file.stem: pd.read_csv(file) for file in (tmp_path / "out").iterdir()}
    assert tables["runs"]["run"].tolist() == ["seed0", "seed1"]
    assert tables["runs"]["accuracy"].tolist() == pytest.approx([0.6, 0.6])
    assert len(tables["evaluations"]) == 12
    assert tables["iterations"]["compute_seconds"].unique().tolist() == [0.6]
    assert tables["links"]["bytes"].sum() == 8_000_000


def test_csv_files_of_packets_are_optional(runs, tmp_path):
    export_csv((*runs, made_up_run(tmp_path / "lossy", seed=2, lossy=True, streamed=True)), tmp_path / "with")
    export_csv(runs, tmp_path / "without")
    tables = {file.stem: pd.read_csv(file) for file in (tmp_path / "with").iterdir()}
    optional = {"parts", "queues", "arrivals", "classes"}
    assert {file.stem for file in (tmp_path / "without").iterdir()} == tables.keys() - optional
    assert tables["parts"]["lost_bytes"].sum() == tables["transfers"]["lost_bytes"].sum()
    assert tables["queues"]["port"].nunique() == 3


def test_the_csv_file_of_membership_is_optional(runs, tmp_path):
    export_csv((*runs, made_up_run(tmp_path / "away", seed=2, absent=True)), tmp_path / "with")
    export_csv(runs, tmp_path / "without")
    assert pd.read_csv(tmp_path / "with" / "membership.csv")["bytes"].sum() == 4000
    assert not (tmp_path / "without" / "membership.csv").exists()


def test_a_trace_has_each_workers_slices_and_counters(runs, tmp_path):
    export_trace(runs, tmp_path / "out")
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == ["seed0.json", "seed1.json"]
    events = json.loads((tmp_path / "out" / "seed0.json").read_text())["traceEvents"]
    threads = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert threads == {0: "east/0", 1: "east/1"}
    slices = [event for event in events if event["ph"] == "X" and event["tid"] == 1]
    assert [(one["name"], one["ts"], one["dur"]) for one in slices[:2]] == [
        ("compute", pytest.approx(0), pytest.approx(600_000)),
        ("wait", pytest.approx(600_000), pytest.approx(400_000)),
    ]
    assert sum(one["dur"] for one in slices) == pytest.approx(20e6)
    counters = {event["name"]: event["args"]["value"] for event in events if event["ph"] == "C"}
    assert counters["sent by east/0 (Mbps)"] == pytest.approx(0.8)
    assert counters["test accuracy of east/1 (%)"] == pytest.approx(61)


@pytest.fixture
def told(tmp_path):
    """A run with all that a timeline tells of."""
    manifest = {"scenario": "made-up", "system": "dlion", "workers": ["east/0", "east/1"], "clouds": ["east", "east"]}
    writer = RunWriter.create(tmp_path / "told", scenario_yaml="", manifest=manifest)
    writer.append(MetricsRow(1.0, 1.0, 0, "profile", 0, compute_seconds=1.0, wait_seconds=0.0))
    waited = {"batch_size": 8, "compute_seconds": 2.0, "waited_for": 1, "wait_reason": "token"}
    writer.append(MetricsRow(6.0, 6.0, 0, "iteration", 1, 1.0, wait_seconds=3.0, **waited))
    writer.append(MetricsRow(9.0, 9.0, 0, "unfinished", 2, compute_seconds=1.0, wait_seconds=2.0))
    for begin, end in ((1.0, 4.0), (2.0, 3.0), (3.5, 5.0), (5.0, None)):
        writer.append(TransfersRow(begin, end, 0, 1, "data", "contribution", 100))
    writer.finish({"status": "completed"})
    return Run.open(writer.folder)


def test_a_trace_has_profiling_and_unfinished_waits(told, tmp_path):
    export_trace((told,), tmp_path / "out")
    events = json.loads((tmp_path / "out" / "told.json").read_text())["traceEvents"]
    slices = [(one["name"], one["ts"] / 1e6, one["dur"] / 1e6) for one in events if one["ph"] == "X" and not one["tid"]]
    assert slices == [("profile", 0, 1), ("compute", 1, 2), ("wait", 3, 3), ("compute", 6, 1), ("wait", 7, 2)]
    args = [one["args"] for one in events if one["name"] == "wait"]
    assert args == [{"iteration": 1, "waited for": "east/1", "reason": "token"}, {"iteration": 2}]


def test_a_trace_has_messages_in_lanes(told, tmp_path):
    export_trace((told,), tmp_path / "out")
    events = json.loads((tmp_path / "out" / "told.json").read_text())["traceEvents"]
    names = {one["tid"]: one["args"]["name"] for one in events if one["name"] == "thread_name"}
    assert names == {0: "east/0", 1: "east/1", 2: "east/0 sends", 3: "east/0 sends"}
    order = {one["tid"]: one["args"]["sort_index"] for one in events if one["name"] == "thread_sort_index"}
    assert sorted(order, key=order.get) == [0, 2, 3, 1]
    sent = [one for one in events if one["name"] == "contribution to east/1"]
    lanes = [(one["tid"], one["ts"] / 1e6, one["dur"] / 1e6) for one in sent]
    assert lanes == [(2, 1, 3), (3, 2, 1), (3, 3.5, 1.5), (2, 5, 4)]
    assert sent[0]["args"] == {"to": "east/1", "channel": "data", "bytes": 100}


def test_event_files_read_as_scalars(runs, tmp_path):
    accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    export_tensorboard(runs, tmp_path / "out")
    read = accumulators.EventAccumulator(str(tmp_path / "out" / "seed1"))
    read.Reload()
    means = read.Scalars("accuracy/mean")
    assert [event.wall_time for event in means] == [0, 10, 20]
    assert [event.value for event in means] == pytest.approx([0.1, 0.5, 0.6])
    assert [event.step for event in read.Scalars("batch_size/east-1")] == list(range(1, 21))


def test_validation_metrics_have_their_own_names(tmp_path):
    run = made_up_run(tmp_path / "run", evaluated_on="validation")
    export_trace((run,), tmp_path / "trace")
    events = json.loads((tmp_path / "trace/run.json").read_text())["traceEvents"]
    assert {event["name"] for event in events if "accuracy" in event["name"]} == {
        f"validation accuracy of east/{worker} (%)" for worker in (0, 1)
    }
    accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    export_tensorboard((run,), tmp_path / "out")
    read = accumulators.EventAccumulator(str(tmp_path / "out/run"))
    read.Reload()
    assert {tag for tag in read.Tags()["scalars"] if "accuracy" in tag} == {
        f"validation_accuracy/{name}" for name in ("mean", "east-0", "east-1")
    }


def test_without_tensorboard_the_line_names_the_extra(runs, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(InputError, match=r"pip install 'dlion-sim\[tensorboard\]'"):
        export_tensorboard(runs, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_in_use_is_refused(runs, tmp_path):
    with pytest.raises(InputError, match="is not empty"):
        export_csv(runs, tmp_path / "runs")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        export_trace(runs, tmp_path / "file")
