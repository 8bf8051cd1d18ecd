import errno
import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dlion_sim import files
from dlion_sim.errors import InputError
from dlion_sim.results import (
    LINKS,
    METRICS,
    PARTS,
    QUEUES,
    TRANSFERS,
    Hold,
    LinksRow,
    MetricsRow,
    PartsRow,
    QueuesRow,
    Run,
    RunWriter,
    TransfersRow,
    environment,
    growing,
)
from dlion_sim.results.atomic import json_bytes

ROOT = Path(__file__).parents[2]
SCENARIO = "name: quickstart\nworkers: 2\n"
SUMMARY = {"status": "completed", "accuracy": {"mean": 0.9}}


def create(folder: Path, *, force: bool = False) -> RunWriter:
    return RunWriter.create(folder, scenario_yaml=SCENARIO, manifest={"seed": 1}, force=force)


def iteration(number: int) -> MetricsRow:
    return MetricsRow(
        virtual_time=number * 0.5,
        wall_time=number * 0.01,
        worker=number % 2,
        kind="iteration",
        iteration=number,
        loss=2.0,
        batch_size=32,
        global_batch_size=64,
        staleness=0.5,
        applied=1,
        merged=0,
        compute_seconds=0.4,
        wait_seconds=0.1,
        waited_for=1,
        wait_reason="contribution",
        prep_seconds=0.05,
        fetch_seconds=0.02,
    )


def evaluation(time: float, worker: int, accuracy: float) -> MetricsRow:
    return MetricsRow(time, time / 10, worker, "evaluation", 1, 1.5, accuracy)


def read_all(folder: Path) -> None:
    run = Run.open(folder)
    assert run.scenario
    run.metrics()


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_rows_and_schemas_have_the_same_columns() -> None:
    assert list(MetricsRow._fields) == METRICS.names
    assert list(LinksRow._fields) == LINKS.names
    assert list(TransfersRow._fields) == TRANSFERS.names
    assert list(PartsRow._fields) == PARTS.names
    assert list(QueuesRow._fields) == QUEUES.names


def test_a_finished_run_reads_as_it_was_written(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "lr=0.1"
    writer = create(folder)
    rows = [iteration(1), iteration(2), evaluation(1.0, 0, 0.25)._replace(metric=12.5), iteration(3)]
    for row in rows[:2]:
        writer.metrics(row)
    writer.flush()
    for row in rows[2:]:
        writer.metrics(row)
    writer.links(LinksRow(10.0, 0, 1, bytes=2**40, messages=3, gradients=2, n_percent=12.5))
    writer.links(LinksRow(10.0, 1, 0, bytes=0, messages=0, gradients=0))
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
    table = growing.read(tmp_path / "run" / "metrics.parquet", METRICS)
    assert table.schema.field("virtual_time").metadata[b"unit"] == b"s"


def test_a_run_without_rows_has_empty_tables_at_any_time(tmp_path: Path) -> None:
    writer = create(tmp_path / "run")
    assert Run.open(tmp_path / "run").metrics().empty
    writer.finish(SUMMARY)
    run = Run.open(tmp_path / "run")
    for table, schema in ((run.links(), LINKS), (run.transfers(), TRANSFERS)):
        assert list(table.columns)[: len(schema)] == schema.names


def test_what_only_packets_have_is_there_where_something_is_told(tmp_path: Path) -> None:
    """And goes on after a kill, from before its first row too."""
    part = PartsRow(0.5, 0, 1, "contribution", "push", 3, True, 1000, 100, None)
    queue = QueuesRow(1.0, "east -> west", 5000, 12.5, 3028, 1, 2)
    tables = ("parts.parquet", "queues.parquet", "parts.parts", "queues.parts")
    create(tmp_path / "without").finish(SUMMARY)
    assert not any((tmp_path / "without" / name).exists() for name in tables)
    assert list(Run.open(tmp_path / "without").queues().columns) == QUEUES.names
    writer = create(tmp_path / "run")
    writer.queues(queue)
    writer.flush()
    writer.parts(part)
    writer.flush()
    writer.close()
    assert [len(Run.open(tmp_path / "run").parts()), len(Run.open(tmp_path / "run").queues())] == [1, 1]
    again = RunWriter.resume(tmp_path / "run", Hold(tmp_path / "run"), (0, 0, 0, 0, 1))
    again.finish(SUMMARY)
    run = Run.open(tmp_path / "run")
    assert run.queues().to_dict("records") == [queue._asdict()]
    assert not any((tmp_path / "run" / name).exists() for name in tables if name != "queues.parquet")
    third = RunWriter.resume(tmp_path / "run", Hold(tmp_path / "run"), (0, 0, 0, 0, 0))
    third.parts(part)
    third.finish(SUMMARY)
    assert [len(run.parts()), len(run.queues())] == [1, 0]
    assert run.parts()["large"].tolist() == [True]
    assert create(tmp_path / "run", force=True).rows == (0, 0, 0, 0, 0)
    assert not (tmp_path / "run" / "parts.parquet").exists()


def test_numbers_have_names_beside_them(tmp_path: Path) -> None:
    manifest = {"workers": ["east/0", "west/0"], "servers": ["server 2"], "clouds": ["east", "west", "west"]}
    writer = RunWriter.create(tmp_path / "run", scenario_yaml=SCENARIO, manifest=manifest)
    writer.links(LinksRow(1.0, 0, 2, 10, 1, 1))
    writer.transfers(TransfersRow(0.5, None, 2, 1, "data", "contribution", 7))
    writer.metrics(iteration(1)._replace(waited_for=2, wait_reason="contribution"))
    writer.metrics(evaluation(1.0, 0, 0.5))
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


def test_runs_from_before_there_were_names_and_transfers_stay_readable(tmp_path: Path) -> None:
    create(tmp_path / "run").finish(SUMMARY)
    (tmp_path / "run" / "manifest.json").write_text('{"workers": ["east/0", "west/0"], "status": "completed"}')
    shutil.copytree(tmp_path / "run", tmp_path / "old")
    former = [name for name in METRICS.names if name not in ("waited_for", "wait_reason")]
    row = pa.Table.from_pylist([iteration(1)._asdict()], schema=METRICS).select(former)
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
def test_the_status_goes_from_running_to_the_summarys(tmp_path: Path, status: str) -> None:
    writer = create(tmp_path / "run")
    running = Run.open(tmp_path / "run")
    assert running.manifest["status"] == "running"
    assert running.summary is None
    writer.finish({"status": status})
    assert Run.open(tmp_path / "run").manifest["status"] == status


def test_what_is_known_only_at_the_end_joins_the_manifest(tmp_path: Path) -> None:
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
    writer.metrics(iteration(number))
    writer.flush()
writer.metrics(iteration(3))
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
    writer.metrics(iteration(1))
    monkeypatch.setattr("shutil.rmtree", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        writer.finish(SUMMARY)
    assert (tmp_path / "run" / "metrics.parts").is_dir()
    assert len(Run.open(tmp_path / "run").metrics()) == 1


def test_rows_reach_the_disk_by_number_and_by_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing, "FLUSH_ROWS", 3)
    writer = create(tmp_path / "run")
    for number in range(4):
        writer.metrics(iteration(number))
    assert len(Run.open(tmp_path / "run").metrics()) == 3
    monkeypatch.setattr(growing, "FLUSH_SECONDS", 0.0)
    writer.metrics(iteration(4))
    assert len(Run.open(tmp_path / "run").metrics()) == 5


def test_writing_many_rows_is_cheap(tmp_path: Path) -> None:
    writer = create(tmp_path / "run")
    start = time.process_time()
    for number in range(100_000):
        writer.metrics(iteration(number))
    writer.finish(SUMMARY)
    assert time.process_time() - start < 2.0
    assert len(Run.open(tmp_path / "run").metrics()) == 100_000


def test_a_folder_with_a_run_is_refused_unless_forced(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    writer = create(folder)
    writer.metrics(iteration(1))
    writer.finish(SUMMARY)
    (folder / "accuracy.png").write_bytes(b"old")
    (folder / "notes.txt").write_text("mine")
    before = contents(folder)

    with pytest.raises(InputError, match=r"already holds a run; allowed: .*force"):
        create(folder)
    assert contents(folder) == before

    create(folder, force=True)
    assert set(contents(folder)) == {"manifest.json", "scenario.yaml", "notes.txt"}
    assert Run.open(folder).summary is None


@pytest.mark.parametrize("force", [False, True])
def test_a_folder_with_other_things_is_refused_even_if_forced(tmp_path: Path, force: bool) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(InputError, match="holds other things than a run"):
        create(tmp_path, force=force)
    assert contents(tmp_path) == {"thesis.tex": b"mine"}


def test_a_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "run"
    file.write_text("mine")
    with pytest.raises(InputError, match="is a file, but a run is a folder") as refusal:
        create(file, force=True)
    assert (refusal.value.file, refusal.value.path) == (file, None)
    with pytest.raises(InputError, match="cannot be written: Not a directory"):
        create(file / "run")
    assert file.read_text() == "mine"


@pytest.mark.parametrize("broken", [(Path, "mkdir"), (Path, "write_bytes"), (growing.GrowingTable, "__init__")])
@pytest.mark.parametrize("exists", [False, True])
def test_a_failing_create_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exists: bool, broken: tuple[type, str]
) -> None:
    folder = tmp_path / "a" / "run"
    if exists:
        folder.mkdir(parents=True)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(*broken, refuse)
    with pytest.raises(InputError, match="cannot be written: Permission denied"):
        create(folder)
    assert list(tmp_path.rglob("*")) == ([folder.parent, folder] if exists else [])


def test_a_manifest_that_json_cannot_say_touches_nothing(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        RunWriter.create(tmp_path / "run", scenario_yaml=SCENARIO, manifest={"seed": object()})
    assert not list(tmp_path.iterdir())


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


def test_what_is_no_run_folder_is_refused(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(InputError, match="is not a run folder"):
            Run.open(folder)


def test_json_is_strict_and_keeps_its_order() -> None:
    text = json_bytes({"b": float("nan"), "a": [float("inf"), 1.5]})
    assert text == b'{\n  "b": null,\n  "a": [\n    null,\n    1.5\n  ]\n}\n'


def test_the_environment_goes_into_a_manifest() -> None:
    here = environment()
    assert json.loads(json_bytes(here)) == here
    assert {"python", "dlion_sim", "torch", "numpy", "simpy"} <= here["versions"].keys()
    assert here["started"].endswith("+00:00")


def test_a_run_goes_on_after_the_rows_that_it_keeps(tmp_path: Path) -> None:
    writer = create(tmp_path / "run")
    rows = [iteration(number) for number in range(6)]
    for row in rows[:4]:
        writer.metrics(row)
    writer.flush()
    for row in rows[4:]:
        writer.metrics(row)
    writer.flush()
    del writer  # as if the process was killed
    again = RunWriter.resume(tmp_path / "run", Hold(tmp_path / "run"), (4, 0, 0, 0, 0), resumed_at=[1.0])
    assert again.rows == (4, 0, 0, 0, 0)
    again.metrics(rows[5])
    again.finish({"status": "interrupted"})
    run = Run.open(tmp_path / "run")
    assert run.manifest["resumed_at"] == [1.0]
    assert run.metrics()["iteration"].tolist() == [0, 1, 2, 3, 5]
    third = RunWriter.resume(tmp_path / "run", Hold(tmp_path / "run"), (2, 0, 0, 0, 0))  # of the one file, now
    assert Run.open(tmp_path / "run").summary is None
    third.metrics(rows[2])
    third.finish({"status": "completed"})
    assert Run.open(tmp_path / "run").metrics()["iteration"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("whole", [False, True])
def test_each_file_of_rows_is_read_once_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: bool) -> None:
    writer = create(tmp_path / "run")
    for number in range(3):
        writer.metrics(iteration(number))
        writer.flush()
    if whole:
        writer.finish({"status": "interrupted"})
    writer.close()
    opened: list[str] = []
    monkeypatch.setattr(growing, "opened", lambda file: opened.append(file.name) or files.opened(file))
    RunWriter.resume(tmp_path / "run", Hold(tmp_path / "run"), (2, 0, 0, 0, 0)).close()
    tables = ["metrics.parquet", "links.parquet", "transfers.parquet"]
    assert opened == (tables if whole else ["00001.parquet", "00002.parquet"])


@pytest.mark.parametrize("rows", [3, 7])
def test_a_run_does_not_go_on_in_the_midst_of_a_part_or_after_its_end(tmp_path: Path, rows: int) -> None:
    writer = create(tmp_path / "run")
    for number in range(6):
        writer.metrics(iteration(number))
    writer.flush()
    del writer
    with pytest.raises(InputError, match=f"has no part that ends with row {rows}"):
        RunWriter.resume(tmp_path / "run", Hold(tmp_path / "run"), (rows, 0, 0, 0, 0))


@pytest.mark.parametrize("whole", [False, True])
def test_a_refused_folder_is_left_as_it_is(tmp_path: Path, whole: bool) -> None:
    """One table would do, and the other does not."""
    writer = create(tmp_path / "run")
    for number in range(6):
        writer.metrics(iteration(number))
        writer.flush()
    if whole:
        writer.finish({"status": "interrupted"})
    writer.close()
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    with pytest.raises(InputError, match="links"):
        RunWriter.resume(tmp_path / "run", Hold(tmp_path / "run"), (4, 1))
    assert {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("force", [False, True])
def test_a_folder_has_one_writer_at_a_time(tmp_path: Path, force: bool) -> None:
    writer = create(tmp_path / "run")
    before = contents(tmp_path)
    with pytest.raises(InputError, match="already holds a run" if not force else "being written by a run") as refused:
        create(tmp_path / "run", force=force)
    assert refused.value.file == tmp_path / "run"
    with pytest.raises(InputError, match="being written by a run that still goes on"):
        Hold(tmp_path / "run")
    assert contents(tmp_path) == before
    writer.finish(SUMMARY)
    create(tmp_path / "run", force=True).finish(SUMMARY)


def test_of_two_that_start_at_once_one_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one has found the folder free just before the first one took it."""
    first = create(tmp_path / "run")
    monkeypatch.setattr("dlion_sim.results.writing._refuse_unless_free", lambda folder, force: None)
    with pytest.raises(InputError, match="being written by a run"):
        create(tmp_path / "run")
    first.metrics(iteration(1))
    first.finish(SUMMARY)
    assert len(Run.open(tmp_path / "run").metrics()) == 1


def test_whoever_is_killed_holds_nothing(tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from dlion_sim.results import RunWriter;"
        "writer = RunWriter.create(Path(sys.argv[1]), scenario_yaml='a: 1', manifest={}); print('begun', flush=True);"
        "time.sleep(60)"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "run")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(InputError, match="being written"):
            create(tmp_path / "run", force=True)
        process.send_signal(signal.SIGKILL)
    create(tmp_path / "run", force=True).finish(SUMMARY)


def test_parts_are_read_in_the_order_in_which_they_were_written(tmp_path: Path) -> None:
    """Their numbers may have any length."""
    folder = tmp_path / "table.parts"
    folder.mkdir()
    table = growing.GrowingTable(tmp_path / "table.parquet", METRICS)
    table._parts = 99_998
    for number in range(1, 4):
        table.append(iteration(number))
        table.flush()
    assert growing.read(tmp_path / "table.parquet", METRICS)["iteration"].to_pylist() == [1, 2, 3]
