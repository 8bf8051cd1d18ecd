"""The figure of one run's metric."""

import math
from pathlib import Path

import matplotlib
import pytest

from dlion_sim.errors import InputError
from dlion_sim.figures import plot_accuracy
from dlion_sim.figures.style import title
from dlion_sim.results import MetricsRow, Run, RunWriter
from tests.made_up import made_up_run


def run_folder(
    folder: Path,
    *,
    workers: int = 3,
    evaluations: int = 10,
    end: float = 100.0,
    batch_sizes: tuple[int, ...] = (32,),
    finished: bool = True,
) -> Run:
    """A made-up run whose accuracy rises to 90 % (NaN at worker 0's last), with batch sizes by turns over workers."""
    names = {"scenario": "made-up", "system": "dlion"}
    writer = RunWriter.create(folder, scenario_yaml="name: made-up\n", manifest=names)
    for worker in range(workers):
        size = batch_sizes[worker % len(batch_sizes)]
        for number in range(1, 21):
            time = end * number / 20
            writer.append(MetricsRow(time, time, worker, "iteration", number, 1.0, batch_size=size))
        for number in range(1, evaluations + 1):
            broken = workers > 1 and worker == 0 and number == evaluations > 1
            accuracy = math.nan if broken else 0.9 * number / evaluations - 0.02 * worker / workers
            time = end * number / evaluations
            writer.append(MetricsRow(time, time, worker, "evaluation", number, 1.0, accuracy))
    writer.flush()
    if finished:
        writer.finish({"status": "completed", **names})
    return Run.open(folder)


@pytest.mark.parametrize(
    "shape",
    [
        {},
        {"workers": 1},
        {"workers": 40, "batch_sizes": (8, 16, 24)},
        {"workers": 12, "batch_sizes": tuple(range(8, 20))},
        {"evaluations": 1, "finished": False},
        {"evaluations": 0, "finished": False},
        {"end": 5000.0},
    ],
)
def test_all_kinds_of_runs_are_drawn(tmp_path: Path, shape: dict[str, object]) -> None:
    file = tmp_path / "accuracy.png"
    assert plot_accuracy(run_folder(tmp_path / "run", **shape), file) == file  # type: ignore[arg-type]
    assert file.stat().st_size > 5000


def test_a_run_without_rows_is_drawn(tmp_path: Path) -> None:
    RunWriter.create(tmp_path / "run", scenario_yaml="{}", manifest={})
    assert plot_accuracy(Run.open(tmp_path / "run"), tmp_path / "a.png").exists()


def test_labels_are_written(tmp_path: Path) -> None:
    run = run_folder(tmp_path / "run", end=5000.0, batch_sizes=(16, 32))
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        svg = plot_accuracy(run, tmp_path / "accuracy.svg").read_text()
    for words in (
        "made-up · dlion",
        "Virtual time (min)",
        "Test accuracy (%)",
        "range of 3 workers",
        "89.0 %",
        "worker",
    ):
        assert words in svg


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_the_same_run_gives_the_same_bytes(tmp_path: Path, suffix: str) -> None:
    run = run_folder(tmp_path / "run", batch_sizes=(16, 32))
    first, second = (plot_accuracy(run, tmp_path / f"{name}{suffix}").read_bytes() for name in ("a", "b"))
    assert first == second
    assert len(first) > 5000


def test_the_callers_style_is_unchanged(tmp_path: Path) -> None:
    before = dict(matplotlib.rcParams)
    plot_accuracy(run_folder(tmp_path / "run"), tmp_path / "accuracy.png")
    assert dict(matplotlib.rcParams) == before


def test_unsupported_files_are_refused(tmp_path: Path) -> None:
    run = run_folder(tmp_path / "run")
    with pytest.raises(InputError, match=r"allowed: \.png, \.svg, \.pdf"):
        plot_accuracy(run, tmp_path / "accuracy.gif")
    with pytest.raises(InputError, match="cannot be written: No such file or directory"):
        plot_accuracy(run, tmp_path / "missing" / "accuracy.png")


def test_the_title_notes_an_interrupted_run(tmp_path):
    assert title(made_up_run(tmp_path / "ended", status="interrupted")) == "made-up · dlion (interrupted)"
    assert title(made_up_run(tmp_path / "sound")) == "made-up · dlion"
