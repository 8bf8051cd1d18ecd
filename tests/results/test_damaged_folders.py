"""Run folders that are damaged or hostile: whatever reads them says in one line which file is at fault, at once."""

import copy
import io
import json
import os
import random
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from rich.console import Console

from dlion_sim import analysis, figures
from dlion_sim.analysis.export import export_csv, export_trace
from dlion_sim.cli.comparison_table import comparison_table
from dlion_sim.cli.fidelity_report import fidelity_report
from dlion_sim.errors import InputError
from dlion_sim.results import FolderLock, Run, RunWriter, find_runs
from dlion_sim.results.atomic import json_bytes
from dlion_sim.simulation import resume, simulate
from tests.simulation.scenarios import streamed

CASES = 150
SECONDS = 60
"""That a case may take on a busy machine: it takes a tenth of one."""
TABLES = ("metrics.parquet", "links.parquet", "classes.parquet")
DOCUMENTS = ("manifest.json", "summary.json")
NUMBERS = (0, -1, 1, 0.5, 1e308, -1e308, 2**31 - 1, 2**40, 2**63 - 1, 10**30, float("nan"), float("inf"))
VALUES = (
    *NUMBERS,
    *(
        None,
        True,
        "",
        "x" * 5000,
        "no",
        "1e3",
        "\x1b[2J",
        "\u202eabc",
        "$\\frac{$",
        "../../etc",
        "東京/ü",
        "a\nb",
        "0.5",
    ),
    *([], {}, [[]], {"": ""}, [None], {"mean": None}, {"mean": "much"}, ["a"] * 3, {"point": 3}, {"point": {"a": []}}),
)

Files = dict[str, bytes]
Reader = Callable[[Run, Run, Path], None]
"""Of a damaged run, beside a sound one; what it writes goes to a path."""


# The damage. Each changes the files of a folder, by name, in some way that `chance` picks.


def value_changed(files: Files, chance: random.Random) -> None:
    name = chance.choice(DOCUMENTS)
    data = json.loads(files[name])
    place, key = chance.choice(list(places(data)))
    match chance.randrange(4):
        case 0:
            del place[key]
        case 1 if isinstance(place, dict):
            place[chance.choice(list(place)) + "x"] = place.pop(key)
        case 2:
            place[key] = [copy.deepcopy(place[key])]
        case _:
            place[key] = chance.choice(VALUES)
    files[name] = json.dumps(data).encode()


def nested_deeply(files: Files, chance: random.Random) -> None:
    name = chance.choice((*DOCUMENTS, "scenario.yaml"))
    depth = chance.choice((60, 600, 5000, 100_000))
    opening, closing = chance.choice((("[", "]"), ('{"a": ', "}")))
    nest = opening * depth + chance.choice(("1", "")) + closing * chance.choice((depth, 0))
    key = chance.choice(("status", "workers", "sweep", "accuracy", "unknown"))
    whole = f'{{"status": "completed", "{key}": {nest}}}'
    files[name] = chance.choice((nest, whole)).encode()


def bytes_changed(files: Files, chance: random.Random) -> None:
    name = chance.choice(list(files))
    content = bytearray(files[name])
    match chance.randrange(4):
        case 0:
            del content[chance.randrange(len(content) + 1) :]
        case 1:
            for _ in range(chance.choice((1, 3, 30))):
                content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        case 2:
            at = chance.randrange(len(content))
            content[at:at] = chance.choice((b"\xff\xfe", b"\0", b"\xed\xa0\x80", chance.randbytes(20)))
        case 3:
            content = bytearray(bytes(content).decode("latin-1").encode(chance.choice(("utf-16", "utf-32", "utf-7"))))
    files[name] = bytes(content)


def files_changed(files: Files, chance: random.Random) -> None:
    name, other = chance.sample(list(files), 2)
    match chance.randrange(3):
        case 0:
            files[name], files[other] = files[other], files[name]
        case 1:
            del files[name]
        case 2:
            files[name] = chance.choice((b"", b"null", b"[]", b"{}", b"PAR1", b"\x80\x05.", files[other]))


def column_changed(files: Files, chance: random.Random) -> None:
    name = chance.choice(TABLES)
    table = pq.read_table(io.BytesIO(files[name]))
    number = chance.randrange(table.num_columns)
    field, column = table.schema.field(number), table.column(number)
    match chance.randrange(5):
        case 0:
            table = table.remove_column(number)
        case 1:
            table = table.append_column(field, column)
        case 2:
            table = table.slice(0, chance.randrange(3))
        case 3:
            kind = chance.choice((pa.string(), pa.float32(), pa.bool_(), pa.int64(), pa.null(), pa.list_(pa.int8())))
            values = pa.nulls(len(table), kind)
            if pa.types.is_string(kind):
                values = pa.array([chance.choice(("iteration", "1", "\x1b[2J"))] * len(table))
            table = table.set_column(number, field.name, values)
        case _:
            values = column.to_pylist()
            for _ in range(chance.choice((1, len(values)))):
                values[chance.randrange(len(values))] = chance.choice((*NUMBERS, None, "neither"))
            try:
                values = pa.array(values, chance.choice((field.type, pa.float64(), pa.int64())), from_pandas=False)
            except (pa.ArrowException, OverflowError, TypeError, ValueError):
                values = column.take(pa.array([0] * len(column)))
            table = table.set_column(number, field.name, values)
    written = io.BytesIO()
    pq.write_table(table, written)
    files[name] = written.getvalue()


def scenario_changed(files: Files, chance: random.Random) -> None:
    if b"*a" in files["scenario.yaml"]:
        return  # It would fill the memory here.
    data = yaml.safe_load(files["scenario.yaml"])
    place, key = chance.choice(list(places(data)))
    place[key] = chance.choice(VALUES)
    files["scenario.yaml"] = yaml.safe_dump(data).encode()


def scenario_replaced(files: Files, chance: random.Random) -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{after}: &{after} [{', '.join([f'*{before}'] * 9)}]\n"
        for before, after in zip("abcdefgh", "bcdefghi", strict=True)
    )
    texts = ("- 1", "text", "&a [*a]", "a: !!python/object:os.system x", "? [a]\n: 1", "a: *b", "\t", "%YAML 9", bomb)
    files["scenario.yaml"] = chance.choice(texts).encode()


DAMAGES: tuple[Callable[[Files, random.Random], None], ...] = (
    *[value_changed] * 4,
    *[column_changed] * 3,
    *[bytes_changed] * 3,
    nested_deeply,
    files_changed,
    scenario_changed,
    scenario_replaced,
)


def places(data: Any) -> Iterator[tuple[Any, Any]]:
    """Everything in a document, by what it is in and its key there."""
    for key, value in data.items() if isinstance(data, dict) else enumerate(data):
        yield data, key
        if isinstance(value, dict | list) and value:
            yield from places(value)


def put_special(file: Path, chance: random.Random) -> None:
    """Something in the place of a file that is none."""
    file.unlink(missing_ok=True)
    match chance.randrange(5):
        case 0:
            file.mkdir()
        case 1:
            os.mkfifo(file)
        case 2:
            file.symlink_to("nowhere")
        case 3:
            file.symlink_to(file.name)
        case 4:
            file.symlink_to("/dev/zero")


# What reads them.


def compared(run: Run, sound: Run, out: Path) -> None:
    groups = analysis.group_runs([run, sound])
    target = analysis.common_target(groups)
    Console(file=io.StringIO()).print(comparison_table(groups, target))


def validated(run: Run, sound: Run, out: Path) -> None:
    fidelity = analysis.compare(sound, run)
    json_bytes(fidelity.document)
    Console(file=io.StringIO()).print(fidelity_report(fidelity, sound, out))


def drawn(run: Run, sound: Run, out: Path) -> None:
    for number, plot in enumerate((figures.plot_accuracy, figures.plot_batch_sizes, figures.plot_links)):
        plot(run, out.with_name(f"{number}.svg"))
    figures.plot_timeline(run, out.with_name("timeline.svg"))


def drawn_together(run: Run, sound: Run, out: Path) -> None:
    groups = analysis.group_runs([run, sound])
    figures.plot_accuracies(groups, out.with_suffix(".svg"))
    figures.plot_deviation(groups, out.with_suffix(".svg"))
    figures.plot_accuracy_at(groups, out.with_suffix(".svg"), 1.0)
    figures.plot_time_to_accuracy(groups, out.with_suffix(".svg"), analysis.common_target(groups))
    figures.plot_online(groups, out.with_suffix(".svg"))
    figures.plot_fidelity(sound, run, out.with_suffix(".svg"))


def exported(run: Run, sound: Run, out: Path) -> None:
    export_csv((run, sound), out)


def traced(run: Run, sound: Run, out: Path) -> None:
    export_trace((run,), out)


def resumed(run: Run, sound: Run, out: Path) -> None:
    """As far as it goes without a checkpoint, and its tables apart."""
    with pytest.raises(InputError):
        resume(run.folder)
    hold = FolderLock(run.folder)
    try:
        rows = len(sound.metrics()), len(sound.links()), len(sound.transfers()), 0, 0, 0, len(sound.classes())
        RunWriter.resume(run.folder, hold, rows).finish(dict(sound.summary or {}))
    finally:
        hold.close()


READERS: tuple[Reader, ...] = (compared, validated, exported, traced, resumed)
SLOW: tuple[Reader, ...] = (drawn, drawn_together)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run with all that a folder can hold."""
    about = {"sweep": {"point": {"workload.batch_size": "8", "system": "dlion"}, "digest": "abc"}}
    drift = [{"kind": "late_class", "class": 3, "from": "1 s"}]
    return simulate(streamed(duration="2 s", drift=drift), tmp_path_factory.mktemp("sound") / "run", manifest=about)


def read(folder: Path, sound: Run, reader: Reader) -> InputError | None:
    """Find and read a folder; how that was refused, if it was."""
    try:
        (found,) = find_runs([folder])
        reader(Run.open(found), sound, folder.parent / "out")
    except InputError as error:
        return error
    return None


@contextmanager
def time_limit() -> Iterator[None]:
    def late(*_: object) -> None:
        pytest.fail(f"took {SECONDS} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def damaged(folder: Path, sound: Run, case: int) -> None:
    """Make `folder` a damaged copy of the run."""
    chance = random.Random(case)
    files = {file.name: file.read_bytes() for file in sound.folder.iterdir() if file.is_file()}
    for _ in range(chance.choice((1, 1, 2))):
        with suppress(Exception):  # The first damage may have left nothing for the second one.
            chance.choice(DAMAGES)(files, chance)
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    if chance.random() < 0.05:
        put_special(folder / chance.choice(list(files)), chance)
    for name in TABLES:
        if chance.random() < 0.1 and (folder / name).is_file():
            (folder / name).with_suffix(".parts").mkdir()
            (folder / name).rename((folder / name).with_suffix(".parts") / "00001.parquet")


@pytest.mark.filterwarnings("ignore")
def test_damaged_folders_are_read_or_named(sound: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = int(os.environ.get("FUZZ_FIRST", 0))
    refused = 0
    for case in range(first, first + CASES):
        folder = tmp_path / str(case) / "run"
        damaged(folder, sound, case)
        try:
            with time_limit():
                refusal = read(folder, sound, READERS[case % len(READERS)] if case % 30 else SLOW[case % 60 // 30])
        except Exception as error:
            error.add_note(f"case {case}")
            raise
        line = str(refusal or folder)
        assert str(folder) in line, (case, line)
        assert line.isprintable(), (case, line)
        refused += bool(refusal)
        shutil.rmtree(folder.parent)
    assert CASES / 4 < refused < CASES


@pytest.mark.parametrize(
    ("change", "words"),
    [({"device": None}, "device: expected `str`"), ({"workers": [7]}, "workers.*: expected `str`")],
)
def test_a_run_with_a_faulty_manifest_is_not_resumed(
    sound: Run, tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    shutil.copytree(sound.folder, tmp_path / "run")
    manifest = tmp_path / "run" / "manifest.json"
    manifest.write_text(json.dumps({**sound.manifest, "status": "interrupted", **change}))
    with pytest.raises(InputError, match=words) as refused:
        resume(tmp_path / "run")
    assert refused.value.file == manifest
