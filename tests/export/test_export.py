"""Runs for other tools: what is written is what those read."""

import json
import sys

import pandas as pd
import pytest

from dlion_sim.errors import InputError
from dlion_sim.export import export_csv, export_tensorboard, export_trace
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


def test_event_files_read_as_scalars(runs, tmp_path):
    accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    export_tensorboard(runs, tmp_path / "out")
    read = accumulators.EventAccumulator(str(tmp_path / "out" / "seed1"))
    read.Reload()
    means = read.Scalars("accuracy/mean")
    assert [event.wall_time for event in means] == [0, 10, 20]
    assert [event.value for event in means] == pytest.approx([0.1, 0.5, 0.6])
    assert [event.step for event in read.Scalars("batch_size/east-1")] == list(range(1, 21))


def test_what_was_measured_on_validation_samples_has_another_name(tmp_path):
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


def test_without_tensorboard_it_is_said_what_to_install(runs, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(InputError, match=r"pip install 'dlion-sim\[tensorboard\]'"):
        export_tensorboard(runs, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_in_use_is_refused(runs, tmp_path):
    with pytest.raises(InputError, match="holds other things"):
        export_csv(runs, tmp_path / "runs")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        export_trace(runs, tmp_path / "file")
