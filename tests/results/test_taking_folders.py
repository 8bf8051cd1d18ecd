"""Who may write into a folder, when, and from which row on; a folder that is refused is left as it is."""

import errno
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from dlion_sim import files
from dlion_sim.errors import InputError
from dlion_sim.results import (
    FolderLock,
    Run,
    RunWriter,
    growing_table,
    writing,
)
from tests.results.made import ROOT, SCENARIO, SUMMARY, contents, create, iteration


def test_a_folder_with_a_run_is_refused_unless_forced(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    writer = create(folder)
    writer.append(iteration(1))
    writer.finish(SUMMARY)
    (folder / "accuracy.png").write_bytes(b"old")
    (folder / "notes.txt").write_text("mine")
    before = contents(folder)

    with pytest.raises(InputError, match=r"already holds a run; allowed: .*force"):
        create(folder)
    assert contents(folder) == before

    (folder / "checkpoint.pt").write_bytes(b"state")
    with pytest.raises(InputError, match=r"already holds a run; allowed: .*it can be resumed with `resume`"):
        create(folder)

    create(folder, force=True)
    assert set(contents(folder)) == {"manifest.json", "scenario.yaml", "notes.txt"}
    assert Run.open(folder).summary is None


@pytest.mark.parametrize("force", [False, True])
def test_a_folder_with_other_things_is_refused_even_if_forced(tmp_path: Path, force: bool) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(InputError, match="holds other things than a run"):
        create(tmp_path, force=force)
    assert contents(tmp_path) == {"thesis.tex": b"mine"}


def test_runs_that_begin_at_once_may_make_the_same_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parent = tmp_path / "out"
    exists = Path.exists

    def exists_a_moment_later(path: Path) -> bool:
        was_there = exists(path)
        if path == parent and not was_there:
            parent.mkdir()
        return was_there

    monkeypatch.setattr(Path, "exists", exists_a_moment_later)
    create(parent / "one").finish(SUMMARY)
    assert Run.open(parent / "one").summary is not None


def test_a_run_that_fails_to_begin_leaves_the_others_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parent = tmp_path / "out"
    monkeypatch.setattr(writing, "FolderLock", partial(_fail_beside, parent / "other"))
    with pytest.raises(InputError, match="cannot be written: No space left"):
        create(parent / "one")
    assert [each.name for each in parent.iterdir()] == ["other"]


def _fail_beside(other: Path, folder: Path) -> None:
    other.mkdir()
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "run"
    file.write_text("mine")
    with pytest.raises(InputError, match="is a file, but a run is a folder") as refusal:
        create(file, force=True)
    assert (refusal.value.file, refusal.value.path) == (file, None)
    with pytest.raises(InputError, match="cannot be written: Not a directory"):
        create(file / "run")
    assert file.read_text() == "mine"


@pytest.mark.parametrize("broken", [(Path, "mkdir"), (Path, "write_bytes"), (growing_table.GrowingTable, "__init__")])
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


def test_a_manifest_that_is_not_json_changes_nothing(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        RunWriter.create(tmp_path / "run", scenario_yaml=SCENARIO, manifest={"seed": object()})
    assert not list(tmp_path.iterdir())


def test_a_run_is_resumed_after_the_kept_rows(tmp_path: Path) -> None:
    writer = create(tmp_path / "run")
    rows = [iteration(number) for number in range(6)]
    for row in rows[:4]:
        writer.append(row)
    writer.flush()
    for row in rows[4:]:
        writer.append(row)
    writer.flush()
    del writer  # as if the process was killed
    again = RunWriter.resume(tmp_path / "run", FolderLock(tmp_path / "run"), (4, 0, 0, 0, 0, 0, 0), resumed_at=[1.0])
    assert again.rows == (4, 0, 0, 0, 0, 0, 0)
    again.append(rows[5])
    again.finish({"status": "interrupted"})
    run = Run.open(tmp_path / "run")
    assert run.manifest["resumed_at"] == [1.0]
    assert run.metrics()["iteration"].tolist() == [0, 1, 2, 3, 5]
    third = RunWriter.resume(
        tmp_path / "run", FolderLock(tmp_path / "run"), (2, 0, 0, 0, 0, 0, 0)
    )  # of the one file, now
    assert Run.open(tmp_path / "run").summary is None
    third.append(rows[2])
    third.finish({"status": "completed"})
    assert Run.open(tmp_path / "run").metrics()["iteration"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("whole", [False, True])
def test_resuming_reads_each_file_of_rows_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: bool) -> None:
    writer = create(tmp_path / "run")
    for number in range(3):
        writer.append(iteration(number))
        writer.flush()
    if whole:
        writer.finish({"status": "interrupted"})
    writer.close()
    opened: list[str] = []
    monkeypatch.setattr(growing_table, "opened", lambda file: opened.append(file.name) or files.opened(file))
    RunWriter.resume(tmp_path / "run", FolderLock(tmp_path / "run"), (2, 0, 0, 0, 0, 0, 0)).close()
    tables = ["metrics.parquet", "links.parquet", "transfers.parquet"]
    assert opened == (tables if whole else ["00001.parquet", "00002.parquet"])


@pytest.mark.parametrize("rows", [3, 7])
def test_a_run_is_resumed_only_at_the_end_of_a_part(tmp_path: Path, rows: int) -> None:
    writer = create(tmp_path / "run")
    for number in range(6):
        writer.append(iteration(number))
    writer.flush()
    del writer
    with pytest.raises(InputError, match=f"has no part that ends with row {rows}"):
        RunWriter.resume(tmp_path / "run", FolderLock(tmp_path / "run"), (rows, 0, 0, 0, 0, 0, 0))


@pytest.mark.parametrize("whole", [False, True])
def test_a_refused_folder_is_unchanged(tmp_path: Path, whole: bool) -> None:
    """One table would do, and the other does not."""
    writer = create(tmp_path / "run")
    for number in range(6):
        writer.append(iteration(number))
        writer.flush()
    if whole:
        writer.finish({"status": "interrupted"})
    writer.close()
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    with pytest.raises(InputError, match="links"):
        RunWriter.resume(tmp_path / "run", FolderLock(tmp_path / "run"), (4, 1))
    assert {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("force", [False, True])
def test_a_folder_has_one_writer_at_a_time(tmp_path: Path, force: bool) -> None:
    writer = create(tmp_path / "run")
    before = contents(tmp_path)
    with pytest.raises(InputError, match="already holds a run" if not force else "being written by a run") as refused:
        create(tmp_path / "run", force=force)
    assert refused.value.file == tmp_path / "run"
    with pytest.raises(InputError, match="being written by a run that still goes on"):
        FolderLock(tmp_path / "run")
    assert contents(tmp_path) == before
    writer.finish(SUMMARY)
    create(tmp_path / "run", force=True).finish(SUMMARY)


def test_of_two_simultaneous_writers_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one has found the folder free just before the first one took it."""
    first = create(tmp_path / "run")
    monkeypatch.setattr("dlion_sim.results.writing._refuse_unless_free", lambda folder, force: None)
    with pytest.raises(InputError, match="being written by a run"):
        create(tmp_path / "run")
    first.append(iteration(1))
    first.finish(SUMMARY)
    assert len(Run.open(tmp_path / "run").metrics()) == 1


def test_a_killed_process_releases_its_folder(tmp_path: Path) -> None:
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
