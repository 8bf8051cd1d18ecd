"""A fault of a run folder's files is reported in one line that names the file, at once."""

import errno
import inspect
import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dlion_sim.analysis import common_target, compare, comparison, group_runs
from dlion_sim.analysis.export import export_trace
from dlion_sim.errors import InputError
from dlion_sim.results import MetricsRow, Run, RunWriter, atomic, find_runs, growing_table, run_names
from tests.command import dlion
from tests.made_up import made_up_run
from tests.results.test_damaged_folders import time_limit


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("sound") / "run"
    return made_up_run(folder, point={"workload.batch_size": "8"}, lossy=True, absent=True)


@pytest.fixture
def run(sound: Run, tmp_path: Path) -> Run:
    shutil.copytree(sound.folder, tmp_path / "run")
    return Run.open(tmp_path / "run")


@pytest.fixture(autouse=True)
def never_hanging() -> Iterator[None]:
    with time_limit():
        yield


def read_all(folder: Path) -> None:
    run = Run.open(folder)
    groups = group_runs([run])
    comparison(groups, common_target(groups))
    compare(run, run)
    assert run.scenario
    run.links()
    run.transfers()
    run.parts()
    run.queues()
    run.membership()


def refusal(folder: Path) -> str:
    """The one line that says why it cannot be read."""
    with pytest.raises(InputError) as refused:
        read_all(folder)
    line = str(refused.value)
    assert line.isprintable()
    return line


def change(file: Path, path: str, *value: object) -> None:
    """Set the value at a dotted path, or remove it."""
    data = json.loads(file.read_text())
    place: Any = data
    *above, last = path.split(".")
    for key in above:
        place = place[key]
    if value:
        place[last] = value[0]
    else:
        del place[last]
    file.write_text(json.dumps(data))


def test_a_sound_run_is_read(sound: Run) -> None:
    read_all(sound.folder)


@pytest.mark.parametrize(
    ("name", "path", "value", "words"),
    [
        ("manifest.json", "status", (), "object missing required field `status`"),
        ("manifest.json", "status", ("done",), "status: invalid enum value 'done'"),
        ("manifest.json", "workers", (), "workers: is required"),
        ("manifest.json", "workers", ("east/0",), "workers: expected `array`, got `str`"),
        ("manifest.json", "workers", (["east/0", 1],), "workers.1: expected `str`, got `int`"),
        ("manifest.json", "workers", (["a", "\x1b[2J"],), "workers.1: expected `str` without control characters"),
        ("manifest.json", "system", (["dlion"],), "system: expected `str`"),
        ("manifest.json", "system", ("x" * 5000,), "system: expected `str` of length <= 1000"),
        ("manifest.json", "seed", ("one",), "seed: expected `int`, got `str`"),
        ("manifest.json", "replaced", (["exchange"],), "replaced: expected `object`, got `array`"),
        ("manifest.json", "sweep", ([1],), "sweep: expected `object`, got `array`"),
        ("manifest.json", "sweep.point", ({"a": 1},), "sweep.point: expected `str`, got `int`"),
        ("manifest.json", "evaluated_on", ("train",), "evaluated_on: invalid enum value 'train'"),
        ("summary.json", "bytes_sent", ("much",), "bytes_sent: expected `int`, got `str`"),
        ("summary.json", "bytes_sent", (), "bytes_sent: is required"),
        ("summary.json", "accuracy", (0.5,), "accuracy: expected `object`, got `float`"),
        ("summary.json", "accuracy.mean", (), "accuracy: object missing required field `mean`"),
        ("summary.json", "time_to_accuracy", ({"half": 1.0},), "time_to_accuracy: expected `str` that is a number"),
        ("summary.json", "time_to_accuracy", ({},), "time_to_accuracy: has no accuracy in common"),
        ("summary.json", "virtual_seconds", (-1.0,), "virtual_seconds: expected `float` >= 0.0"),
        ("summary.json", "transport", (0.1,), "transport: expected `object`, got `float`"),
        ("summary.json", "transport.lost", (1.5,), "transport.lost: expected `float` <= 1.0"),
        ("summary.json", "transport.resent", (), "transport: object missing required field `resent`"),
        ("summary.json", "transport.completion", ({"mean": 1.0},), "transport.completion: object missing required"),
        ("summary.json", "transport.completion.p99", ("long",), "transport.completion.p99: expected `float | null`"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_wrong_value_is_named(run: Run, name: str, path: str, value: tuple[object, ...], words: str) -> None:
    change(run.folder / name, path, *value)
    assert f"{run.folder / name}: {words}" in refusal(run.folder)


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
@pytest.mark.parametrize("depth", [100, 100_000])
@pytest.mark.parametrize("name", ["manifest.json", "summary.json"])
def test_deep_nesting_is_refused(run: Run, name: str, depth: int, opening: str, closing: str) -> None:
    nest = opening * depth + "1" + closing * depth
    (run.folder / name).write_text(f'{{"status": "completed", "unknown": {nest}}}')
    assert f"{run.folder / name}: is nested too deeply" in refusal(run.folder)


@pytest.mark.parametrize("content", [b'{"status": "\xff"}', b'{"status": "\\ud800"}', b"\xff\xfe{"])
def test_invalid_text_is_refused(run: Run, content: bytes) -> None:
    (run.folder / "manifest.json").write_bytes(content)
    assert f"{run.folder / 'manifest.json'}: cannot be read" in refusal(run.folder)


def test_a_completed_run_needs_its_summary(run: Run) -> None:
    (run.folder / "summary.json").unlink()
    assert f"{run.folder / 'summary.json'}: is missing" in refusal(run.folder)


@pytest.mark.parametrize(
    "name", ["manifest.json", "summary.json", "scenario.yaml", "metrics.parquet", "membership.parquet"]
)
@pytest.mark.parametrize("kind", ["folder", "pipe", "loop", "link to nowhere", "link to a device"])
def test_only_regular_files_are_opened(run: Run, name: str, kind: str) -> None:
    file = run.folder / name
    file.unlink()
    match kind:
        case "folder":
            file.mkdir()
        case "pipe":
            os.mkfifo(file)
        case "loop":
            file.symlink_to(name)
        case "link to nowhere":
            file.symlink_to("nowhere")
        case "link to a device":
            file.symlink_to("/dev/zero")
    assert str(run.folder if name == "manifest.json" else file) in refusal(run.folder)


@pytest.mark.parametrize("name", ["manifest.json", "summary.json", "scenario.yaml"])
def test_oversized_files_are_refused_unread(run: Run, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with (run.folder / name).open("r+b") as file:
        file.truncate(100_000_000)
    assert f"{run.folder / name}: holds 100.0 MB, which is too much; allowed: " in refusal(run.folder)


def rewrite(file: Path, **columns: object) -> None:
    """Set columns of a table; None removes one."""
    frame = pd.read_parquet(file)
    for name, values in columns.items():
        frame = frame.drop(columns=name) if values is None else frame.assign(**{name: values})
    frame.to_parquet(file)


@pytest.mark.parametrize(
    ("name", "column", "value", "words"),
    [
        ("metrics.parquet", "worker", None, "worker: is missing"),
        ("metrics.parquet", "worker", 2, "worker: holds 2; allowed: 0 to 1"),
        ("metrics.parquet", "worker", -1, "worker: holds -1; allowed: 0 to 1"),
        ("metrics.parquet", "worker", "east", "worker: is of the type"),
        ("metrics.parquet", "worker", 0.5, "worker: cannot be read"),
        ("metrics.parquet", "worker", 2**40, "worker: cannot be read"),
        ("metrics.parquet", "kind", "neither", "kind: holds rows of another kind"),
        ("metrics.parquet", "virtual_time", float("nan"), "virtual_time: has gaps"),
        ("metrics.parquet", "virtual_time", float("inf"), "virtual_time: holds inf"),
        ("metrics.parquet", "virtual_time", -1.0, "virtual_time: holds -1; allowed: 0 to 1e+15"),
        ("metrics.parquet", "accuracy", 1.5, "accuracy: holds 1.5; allowed: 0 to 1"),
        ("metrics.parquet", "wait_seconds", float("-inf"), "wait_seconds: holds -inf"),
        ("links.parquet", "bytes", -5, "bytes: holds -5"),
        ("links.parquet", "sender", -1, "sender: holds -1"),
        ("transfers.parquet", "lost_bytes", -1, "lost_bytes: holds -1"),
        ("parts.parquet", "variable", None, "variable: is missing"),
        ("parts.parquet", "variable", -1, "variable: holds -1"),
        ("parts.parquet", "large", 1, "large: is of the type int64; allowed: bool"),
        ("parts.parquet", "seconds", -1.0, "seconds: holds -1"),
        ("queues.parquet", "port", 3, "port: is of the type"),
        ("queues.parquet", "dropped", 2**62, "dropped: holds 4.6"),
        ("membership.parquet", "what", "vanished", "what: holds rows of another kind; allowed: begins_anew, down, "),
        ("membership.parquet", "participant", -1, "participant: holds -1"),
    ],
)
def test_values_that_cannot_be_measured_are_refused(
    run: Run, name: str, column: str, value: object, words: str
) -> None:
    rewrite(run.folder / name, **{column: value})
    assert f"{run.folder / name}: {words}" in refusal(run.folder)


def test_nan_is_not_null(run: Run) -> None:
    file = run.folder / "metrics.parquet"
    table = pq.read_table(file)
    times = pa.array([float("nan")] * len(table))
    pq.write_table(table.set_column(0, table.schema.field(0), times), file)
    assert f"{file}: virtual_time: holds nan" in refusal(run.folder)


def test_a_column_that_an_older_table_lacks_is_empty(run: Run) -> None:
    rewrite(run.folder / "metrics.parquet", merged=None, unknown=1)
    assert run.metrics()["merged"].isna().all()
    assert "unknown" not in run.metrics()


@pytest.mark.parametrize("name", ["metrics.parquet", "membership.parquet"])
@pytest.mark.parametrize("place", [0.05, 0.3, 0.95])
def test_a_damaged_page_is_named(run: Run, name: str, place: float) -> None:
    content = bytearray((run.folder / name).read_bytes())
    at = int(place * len(content))
    content[at : at + 40] = bytes(40)
    (run.folder / name).write_bytes(content)
    line = refusal(run.folder)
    assert str(run.folder / name) in line
    assert "None" not in line


def test_names_are_read_as_they_are_written(run: Run) -> None:
    (run.folder / "scenario.yaml").write_text("name: no\nclouds: [on, 1e3, 1:30, 0x1F, 2020-01-01]\n")
    assert run.scenario == {"name": "no", "clouds": ["on", 1000.0, "1:30", "0x1F", "2020-01-01"]}
    (run.folder / "scenario.yaml").write_text("name: a\nname: b\n")
    assert f"{run.folder / 'scenario.yaml'}: line 2" in refusal(run.folder)


def test_a_trace_needs_names(run: Run, tmp_path: Path) -> None:
    change(run.folder / "manifest.json", "workers")
    with pytest.raises(InputError, match=r"manifest\.json: workers: is required"):
        export_trace((Run.open(run.folder),), tmp_path / "out")


def test_folders_may_be_nested_beyond_the_recursion_limit(tmp_path: Path) -> None:
    run = made_up_run(tmp_path.joinpath(*"abcdefgh" * 15) / "run")
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 60)
    try:
        found = find_runs([tmp_path])
    finally:
        sys.setrecursionlimit(usual)
    assert found == [run.folder]


def test_folder_names_that_are_not_text_are_printable(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    runs = [made_up_run(Path("runs") / os.fsdecode(name), extra=f"own: {len(name)}") for name in (b"\xff", b"\x1b[2J")]
    assert all(name.isprintable() for name in run_names([run.folder for run in runs]))
    assert dlion(monkeypatch, "compare", "runs") == 0
    assert dlion(monkeypatch, "export", "runs", "--to", "csv", "-o", "out") == 0
    (runs[1].folder / "summary.json").unlink()
    capsys.readouterr()
    assert dlion(monkeypatch, "plot", "links", str(runs[1].folder), "-o", "a.png") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == r"dlion: runs/\x1b[2J/summary.json: is missing"


def test_an_error_of_a_full_disk_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = RunWriter.create(tmp_path / "run", scenario_yaml="{}", manifest={})

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")  # as `write` does: it knows no name

    monkeypatch.setattr(growing_table.pq, "write_table", full)
    writer.append(MetricsRow(1.0, 1.0, 0, "iteration", 1, 1.0))
    with pytest.raises(OSError, match="No space left") as refused:
        writer.flush()
    assert refused.value.filename == str(tmp_path / "run" / "metrics.parts" / "00001.parquet")
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left") as refused:
        atomic.write(tmp_path / "summary.json", b"")
    assert refused.value.filename == str(tmp_path / "summary.json")
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_link_in_the_place_of_a_temporary_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "manifest.json.tmp").symlink_to("mine")
    atomic.write(tmp_path / "manifest.json", b"{}")
    assert (tmp_path / "mine").read_text() == "mine"
    assert (tmp_path / "manifest.json").read_bytes() == b"{}"


@pytest.mark.parametrize("name", ["metrics.parts", "links.parts", "transfers.parts", "parts.parts"])
def test_a_run_whose_parts_are_not_a_folder_is_not_resumed(run: Run, name: str) -> None:
    (run.folder / name).symlink_to("..")
    with pytest.raises(InputError, match="is no folder") as refused:
        growing_table.find_beginning((run.folder / name).with_suffix(".parquet"), growing_table.pa.schema([]), 1)
    assert refused.value.file == run.folder / name


def test_a_system_may_have_a_formula_as_its_name(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change(run.folder / "manifest.json", "system", "$\\frac{$")
    assert dlion(monkeypatch, "plot", "batch-sizes", str(run.folder), "-o", str(tmp_path / "a.svg")) == 0
