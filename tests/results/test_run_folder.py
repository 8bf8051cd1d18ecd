import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dlion_sim.errors import InputError
from dlion_sim.results import (
    METRICS,
    ClassesRow,
    FolderLock,
    LinksRow,
    MembershipRow,
    MetricsRow,
    PartsRow,
    QueuesRow,
    Run,
    RunWriter,
    TransfersRow,
    environment,
    growing_table,
)
from dlion_sim.results.atomic import json_bytes
from tests.results.made import ROOT, SCENARIO, SUMMARY, create, evaluation, iteration, read_all


def test_a_finished_run_reads_as_it_was_written(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "lr=0.1"
    writer = create(folder)
    rows = [iteration(1), iteration(2), evaluation(1.0, 0, 0.25)._replace(metric=12.5), iteration(3)]
    for row in rows[:2]:
        writer.append(row)
    writer.flush()
    for row in rows[2:]:
        writer.append(row)
    writer.append(LinksRow(10.0, 0, 1, bytes=2**40, messages=3, gradients=2, n_percent=12.5))
    writer.append(LinksRow(10.0, 1, 0, bytes=0, messages=0, gradients=0))
    writer.finish(SUMMARY)

    run = Run.open(folder)
    assert run.scenario == {"name": "quickstart", "workers": 2}
    assert run.manifest == {"seed": 1, "status": "completed"}
    assert run.summary == SUMMARY
    metrics = run.metrics()[list(MetricsRow._fields)]
    pd.testing.assert_frame_equal(metrics, pd.DataFrame(rows), check_dtype=False, check_categorical=False)
    assert run.links()["bytes"].tolist() == [2**40, 0]
    assert run.links()["n_percent"].isna().tolist() == [False, True]
    assert run.evaluations()["accuracy"].tolist() == [0.25]
    assert run.iterations()["iteration"].tolist() == [1, 2, 3]
    assert {path.name for path in folder.iterdir()} == {
        "scenario.yaml",
        "manifest.json",
        "metrics.parquet",
        "links.parquet",
        "transfers.parquet",
        "summary.json",
    }


def test_units_stand_in_the_file(tmp_path: Path) -> None:
    create(tmp_path / "run").finish(SUMMARY)
    table = growing_table.read(tmp_path / "run" / METRICS.file, METRICS.schema)
    assert table.schema.field("virtual_time").metadata[b"unit"] == b"s"


def test_a_run_without_rows_has_empty_tables_at_any_time(tmp_path: Path) -> None:
    writer = create(tmp_path / "run")
    assert Run.open(tmp_path / "run").metrics().empty
    writer.finish(SUMMARY)
    run = Run.open(tmp_path / "run")
    for table, row in ((run.links(), LinksRow), (run.transfers(), TransfersRow)):
        assert tuple(table.columns[: len(row._fields)]) == row._fields


def test_optional_tables_exist_only_with_rows(tmp_path: Path) -> None:
    """Also after resuming, from before the first row too."""
    part = PartsRow(0.5, 0, 1, "contribution", "push", 3, True, 1000, 100, None)
    queue = QueuesRow(1.0, "east -> west", 5000, 12.5, 3028, 1, 2)
    optional = ("parts", "queues", "membership", "classes")
    tables = [f"{name}.{end}" for name in optional for end in ("parquet", "parts")]
    create(tmp_path / "without").finish(SUMMARY)
    assert not any((tmp_path / "without" / name).exists() for name in tables)
    without = Run.open(tmp_path / "without")
    assert without.parts().empty
    assert without.membership().empty
    assert without.classes().empty
    assert list(without.queues().columns) == [*QueuesRow._fields]
    writer = create(tmp_path / "run")
    writer.append(queue)
    writer.flush()
    writer.append(part)
    writer.flush()
    writer.close()
    assert [len(Run.open(tmp_path / "run").parts()), len(Run.open(tmp_path / "run").queues())] == [1, 1]
    again = RunWriter.resume(tmp_path / "run", FolderLock(tmp_path / "run"), (0, 0, 0, 0, 1, 0, 0))
    again.finish(SUMMARY)
    run = Run.open(tmp_path / "run")
    assert run.queues().to_dict("records") == [queue._asdict()]
    assert not any((tmp_path / "run" / name).exists() for name in tables if name != "queues.parquet")
    third = RunWriter.resume(tmp_path / "run", FolderLock(tmp_path / "run"), (0, 0, 0, 0, 0, 0, 0))
    third.append(part)
    third.finish(SUMMARY)
    assert [len(run.parts()), len(run.queues())] == [1, 0]
    assert run.parts()["large"].tolist() == [True]
    assert create(tmp_path / "run", force=True).rows == (0, 0, 0, 0, 0, 0, 0)
    assert not (tmp_path / "run" / "parts.parquet").exists()


def test_rows_of_membership(tmp_path: Path) -> None:
    rows = [MembershipRow(1.5, 0, 0, "down"), MembershipRow(1.75, 0, 0, "lost", 1, 0.25)]
    joined = MembershipRow(4.0, 0, 1, "joined", 1, 0.5, 4000, 12)
    manifest = {"workers": ["east/0", "west/0"], "clouds": ["east", "west"]}
    writer = RunWriter.create(tmp_path / "run", scenario_yaml=SCENARIO, manifest=manifest)
    for row in (*rows, joined):
        writer.append(row)
    writer.finish(SUMMARY)
    table = Run.open(tmp_path / "run").membership()
    assert table["what"].tolist() == ["down", "lost", "joined"]
    assert table["peer_name"].tolist()[1:] == ["west/0", "west/0"]
    assert table.iloc[2][list(joined._fields)].tolist() == list(joined)


def test_numbers_have_names_beside_them(tmp_path: Path) -> None:
    manifest = {"workers": ["east/0", "west/0"], "servers": ["server 2"], "clouds": ["east", "west", "west"]}
    writer = RunWriter.create(tmp_path / "run", scenario_yaml=SCENARIO, manifest=manifest)
    writer.append(LinksRow(1.0, 0, 2, 10, 1, 1))
    writer.append(TransfersRow(0.5, None, 2, 1, "data", "contribution", 7))
    writer.append(iteration(1)._replace(waited_for=2, wait_reason="contribution"))
    writer.append(evaluation(1.0, 0, 0.5))
    writer.finish(SUMMARY)
    links, transfers, metrics = (
        pd.read_parquet(tmp_path / "run" / f"{name}.parquet") for name in ("links", "transfers", "metrics")
    )
    ends = ["sender_name", "sender_cloud", "receiver_name", "receiver_cloud"]
    assert links[ends].values.tolist() == [["east/0", "east", "server 2", "west"]]
    assert transfers[ends].values.tolist() == [["server 2", "west", "west/0", "west"]]
    assert metrics["worker_name"].tolist() == ["west/0", "east/0"]
    assert metrics["waited_for_name"].tolist()[0] == "server 2"
    assert metrics["waited_for_name"].isna().tolist() == [False, True]
    schema = pq.read_schema(tmp_path / "run" / "links.parquet")
    assert all(pa.types.is_dictionary(schema.field(name).type) for name in ends)


def test_old_runs_without_names_and_transfers_stay_readable(tmp_path: Path) -> None:
    create(tmp_path / "run").finish(SUMMARY)
    (tmp_path / "run" / "manifest.json").write_text('{"workers": ["east/0", "west/0"], "status": "completed"}')
    shutil.copytree(tmp_path / "run", tmp_path / "old")
    former = [name for name in METRICS.schema.names if name not in ("waited_for", "wait_reason")]
    row = pa.Table.from_pylist([iteration(1)._asdict()], schema=METRICS.schema).select(former)
    pq.write_table(row, tmp_path / "old" / "metrics.parquet")
    (tmp_path / "old" / "transfers.parquet").unlink()
    old, new = Run.open(tmp_path / "old"), Run.open(tmp_path / "run")
    assert old.iterations()[["worker_name", "worker_cloud"]].values.tolist() == [["west/0", "west"]]
    assert old.iterations()["waited_for"].isna().all()
    assert old.transfers().empty
    assert old.parts().empty
    assert old.queues().empty
    assert list(old.transfers().columns) == list(new.transfers().columns)


@pytest.mark.parametrize("status", ["completed", "interrupted", "failed"])
def test_the_status_is_running_and_then_the_summarys(tmp_path: Path, status: str) -> None:
    writer = create(tmp_path / "run")
    running = Run.open(tmp_path / "run")
    assert running.manifest["status"] == "running"
    assert running.summary is None
    writer.finish({"status": status})
    assert Run.open(tmp_path / "run").manifest["status"] == status


def test_facts_of_the_end_are_added_to_the_manifest(tmp_path: Path) -> None:
    create(tmp_path / "run").finish(SUMMARY, manifest={"lost": {"2": "it closed the connection"}})
    manifest = Run.open(tmp_path / "run").manifest
    assert manifest == {"seed": 1, "lost": {"2": "it closed the connection"}, "status": "completed"}


def test_a_killed_run_keeps_what_was_flushed(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    program = f"""
import time
from pathlib import Path
from tests.results.test_run_folder import create, iteration
writer = create(Path({str(folder)!r}))
for number in range(3):
    writer.append(iteration(number))
    writer.flush()
writer.append(iteration(3))
print("flushed", flush=True)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"flushed\n"
        process.send_signal(signal.SIGKILL)
    (folder / "metrics.parts" / "00004.parquet.tmp").write_bytes(b"half a fi")

    run = Run.open(folder)
    assert run.manifest["status"] == "running"
    assert run.metrics()["iteration"].tolist() == [0, 1, 2]
    create(folder, force=True)
    assert Run.open(folder).metrics().empty


def test_a_kill_between_merging_and_removing_the_parts_counts_no_row_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = create(tmp_path / "run")
    writer.append(iteration(1))
    monkeypatch.setattr("shutil.rmtree", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        writer.finish(SUMMARY)
    assert (tmp_path / "run" / "metrics.parts").is_dir()
    assert len(Run.open(tmp_path / "run").metrics()) == 1


def test_rows_are_flushed_by_number_and_by_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing_table, "FLUSH_ROWS", 3)
    writer = create(tmp_path / "run")
    for number in range(4):
        writer.append(iteration(number))
    assert len(Run.open(tmp_path / "run").metrics()) == 3
    monkeypatch.setattr(growing_table, "FLUSH_SECONDS", 0.0)
    writer.append(iteration(4))
    assert len(Run.open(tmp_path / "run").metrics()) == 5


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("manifest.json", b"{", "cannot be read"),
        ("manifest.json", b"[]", "cannot be read"),
        ("summary.json", b'{"status": NaN}', "cannot be read"),
        ("scenario.yaml", b"a: [", "line 1, column 5"),
        ("scenario.yaml", b"text", "holds no mapping"),
        ("metrics.parquet", b"PAR1", "is not a whole Parquet file"),
    ],
)
def test_a_corrupt_file_is_named(tmp_path: Path, name: str, content: bytes, problem: str) -> None:
    create(tmp_path / "run").finish(SUMMARY)
    (tmp_path / "run" / name).write_bytes(content)
    with pytest.raises(InputError, match=problem) as refusal:
        read_all(tmp_path / "run")
    assert refusal.value.file == tmp_path / "run" / name


@pytest.mark.parametrize("name", ["metrics.parquet", "scenario.yaml"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    create(tmp_path / "run").finish(SUMMARY)
    (tmp_path / "run" / name).unlink()
    with pytest.raises(InputError) as refusal:
        read_all(tmp_path / "run")
    assert refusal.value.file == tmp_path / "run" / name


def test_other_folders_are_refused(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(InputError, match="is not a run folder"):
            Run.open(folder)


def test_the_environment_goes_into_a_manifest() -> None:
    here = environment()
    assert json.loads(json_bytes(here)) == here
    assert {"python", "dlion_sim", "torch", "numpy", "simpy"} <= here["versions"].keys()
    assert here["started"].endswith("+00:00")


def test_parts_are_read_in_the_order_in_which_they_were_written(tmp_path: Path) -> None:
    """Their numbers may have any length."""
    table = growing_table.GrowingTable(tmp_path, METRICS)
    table._parts = 99_998
    for number in range(1, 4):
        table.append(iteration(number))
        table.flush()
    assert growing_table.read(tmp_path / METRICS.file, METRICS.schema)["iteration"].to_pylist() == [1, 2, 3]


@pytest.mark.parametrize("moment", ["before the parts are looked for", "between two of them"])
def test_a_table_that_is_merged_while_it_is_read_is_whole(monkeypatch, tmp_path: Path, moment: str) -> None:
    table = growing_table.GrowingTable(tmp_path, METRICS)
    for number in range(1, 4):
        table.append(iteration(number))
        table.flush()
    look = growing_table._parts

    def look_and_merge(asked: Path) -> list[Path]:
        monkeypatch.undo()
        found = look(asked)
        table.merge()
        return found if moment == "between two of them" else look(asked)

    monkeypatch.setattr(growing_table, "_parts", look_and_merge)
    assert growing_table.read(tmp_path / METRICS.file, METRICS.schema)["iteration"].to_pylist() == [1, 2, 3]


def test_rows_of_streams(tmp_path: Path) -> None:
    row = ClassesRow(1.0, 1, 7, 0.125, 40, 0.75)
    writer = create(tmp_path / "run")
    writer.append(row)
    writer.append(MetricsRow(0.5, 0.1, 1, "arrivals", 3, 1.25, 0.5, 8))
    writer.finish(SUMMARY)
    run = Run.open(tmp_path / "run")
    assert run.classes()[[*ClassesRow._fields]].to_dict("records") == [row._asdict()]
    assert run.arrivals()[["iteration", "loss", "accuracy", "batch_size"]].values.tolist() == [[3, 1.25, 0.5, 8]]
    assert run.evaluations().empty
    assert run.iterations().empty
