"""The files of a run folder, besides those of its tables."""

from __future__ import annotations

import os
from itertools import chain, count
from pathlib import Path

from dlion_sim.results import growing_table
from dlion_sim.results.atomic import TEMPORARY
from dlion_sim.results.tables import TABLES

SCENARIO = "scenario.yaml"
MANIFEST = "manifest.json"
SUMMARY = "summary.json"
PLOTS = ("accuracy.png", "metric.png")
"""A run has the one of its metric's key."""
REPORT = "report.html"
CHECKPOINT = "checkpoint.pt"
"""The state from which an interrupted run resumes."""


def holds_run(folder: Path) -> bool:
    """Whether `folder` is a run folder, finished or not: every run has its manifest from the start."""
    return os.path.isfile(folder / MANIFEST)


def free_folder(wanted: Path) -> Path:
    """`wanted`, or that with the first of -2, -3, ... that does not exist."""
    names = (wanted.with_name(f"{wanted.name}-{number}") for number in count(2))
    return next(folder for folder in chain([wanted], names) if not folder.exists())


def clear(folder: Path) -> None:
    """Remove a run's files from `folder`, and nothing else. Raises OSError."""
    for table in TABLES:
        growing_table.remove(folder / table.file)
    for name in (SUMMARY, *PLOTS, REPORT, CHECKPOINT, SCENARIO, MANIFEST):
        for file in (folder / name, folder / (name + TEMPORARY)):
            file.unlink(missing_ok=True)


def remove_checkpoint(folder: Path) -> None:
    """Remove a run's checkpoint, if there is one: it cannot be resumed afterwards. Raises OSError."""
    for file in (folder / CHECKPOINT, folder / (CHECKPOINT + TEMPORARY)):
        file.unlink(missing_ok=True)
