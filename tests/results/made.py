"""A made-up run folder, row by row."""

from pathlib import Path

from dlion_sim.results import (
    MetricsRow,
    Run,
    RunWriter,
)

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
        dropped=3.0,
    )


def evaluation(time: float, worker: int, accuracy: float) -> MetricsRow:
    return MetricsRow(time, time / 10, worker, "evaluation", 1, 1.5, accuracy)


def read_all(folder: Path) -> None:
    run = Run.open(folder)
    assert run.scenario
    run.metrics()


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
