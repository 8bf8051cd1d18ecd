"""What `reproduce` repeats, experiments and tables: their sweeps, in full or short, and their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from dlion_sim.errors import InputError
from dlion_sim.results import Run
from dlion_sim.scenario.shipped import REPRODUCTION
from dlion_sim.scenario.shipped import TABLES as TABLE_SWEEPS
from dlion_sim.studies.reproduction.claims import Experiment, experiments
from dlion_sim.studies.reproduction.tables import TABLES
from dlion_sim.studies.reproduction.tables.table import PublishedTable
from dlion_sim.studies.reproduction.tables.writing import write_table
from dlion_sim.studies.reproduction.writing import write_experiment
from dlion_sim.sweep import Point, load_sweep

PART = 10
"""A short run's duration is 1/PART of the full one."""
_MIN_EVALUATIONS = 6
"""Of a short run."""
MARK = "short"
"""The mark of verdicts on short runs."""

Repeated = Experiment | PublishedTable


def repeated() -> Mapping[str, Repeated]:
    """All by name. Raises InputError if the file of experiments cannot be read."""
    return {**experiments(), **TABLES}


def points_of(name: str, *, short: bool) -> list[Point]:
    """The sweep of an experiment or a table; none for a table without runs. If `short`, only the first seed's points,
    each a tenth as long. Raises InputError if there is no valid sweep."""
    if name in TABLES and not TABLES[name].has_runs:
        return []
    file = (TABLE_SWEEPS if name in TABLES else REPRODUCTION) / f"{name}.yaml"
    if not file.is_file():
        raise InputError("no such sweep", file=file)
    points = load_sweep(file)
    first = points[0].labels.get("seed")
    return [_shortened(point) for point in points if point.labels.get("seed") == first] if short else points


def _shortened(point: Point) -> Point:
    scenario = point.scenario()
    if scenario.duration is None:
        return point
    duration = scenario.duration / PART
    every = min(scenario.workload.evaluate_every, duration / _MIN_EVALUATIONS)
    values = {"duration": f"{duration:g} s", "workload.evaluate_every": f"{every:g} s"}
    labels = {axis: values.get(axis, label) for axis, label in point.labels.items()}
    return replace(point, labels=labels, values={**point.values, **values})


def short_name(name: str) -> str:
    """The name of a short form and of its folders."""
    return f"{name}-short"


def in_short(each: Repeated) -> Repeated:
    """The short form's description: without the target and the findings of the full one."""
    title = f"{each.title} (short)"
    if isinstance(each, PublishedTable):
        note = f"Short: 1/{PART} of each run's duration. The numbers mean nothing."
        return replace(each, title=title, about=f"{note}\n\n{each.about}")
    note = f"Short: one seed, and 1/{PART} of each run's duration. Its verdicts are not about the paper's claims"
    differs = ". ".join(filter(None, [note, each.differs]))
    return each.model_copy(update={"title": title, "differs": differs, "target": None, "found": ""})


def write_results(name: str, each: Repeated, runs: Sequence[Run], folder: Path, again: str, mark: str = "") -> None:
    """Write the results of an experiment or a table, as `write_experiment` and `write_table`."""
    if isinstance(each, PublishedTable):
        write_table(name, each, runs, folder, again, mark)
    else:
        write_experiment(name, each, runs, folder, again, mark)
