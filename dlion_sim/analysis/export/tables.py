"""Runs as CSV files."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from dlion_sim.analysis.export.folder import new_folder
from dlion_sim.results import Frames, Run
from dlion_sim.results.atomic import naming


def export_csv(runs: tuple[Run, ...], folder: Path) -> None:
    """Write a CSV file of each table that `Frames` has, runs.csv for its summaries, to a new or empty folder.

    Of what not every run has (parts, queues; membership; arrivals, classes) there is none where no run tells.

    Raises InputError where a run cannot be read or the folder cannot be used.
    """
    new_folder(folder)
    frames = Frames(runs)
    optional: dict[str, pd.DataFrame] = {
        "parts": frames.parts,
        "queues": frames.queues,
        "membership": frames.membership,
        "arrivals": frames.arrivals,
        "classes": frames.classes,
    }
    for name, table in (
        ("runs", frames.summaries),
        ("evaluations", frames.evaluations),
        ("iterations", frames.iterations),
        ("links", frames.links),
        ("transfers", frames.transfers),
        *((name, table) for name, table in optional.items() if len(table)),
    ):
        file = folder / f"{name}.csv"
        with naming(file):
            table.to_csv(file, index=False)
