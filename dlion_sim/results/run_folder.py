"""What a run folder is made of."""

from __future__ import annotations

import os
from itertools import chain, count
from pathlib import Path

from dlion_sim.results import growing_table
from dlion_sim.results.atomic import TEMPORARY

SCENARIO = "scenario.yaml"
MANIFEST = "manifest.json"
METRICS = "metrics.parquet"
LINKS = "links.parquet"
TRANSFERS = "transfers.parquet"
PARTS = "parts.parquet"
QUEUES = "queues.parquet"
MEMBERSHIP = "membership.parquet"
CLASSES = "classes.parquet"
SUMMARY = "summary.json"
PLOTS = ("accuracy.png", "metric.png")
"""Of which a run has one, as the key of its metric says."""
REPORT = "report.html"
CHECKPOINT = "checkpoint.pt"
"""From which a run that was ended early goes on."""


def holds_run(folder: Path) -> bool:
    """Whether `folder` is a run folder, finished or not: every run has its manifest from the start."""
    return os.path.isfile(folder / MANIFEST)


def free_folder(wanted: Path) -> Path:
    """`wanted`, or that with the first of -2, -3, ... under which nothing is there yet."""
    names = (wanted.with_name(f"{wanted.name}-{number}") for number in count(2))
    return next(folder for folder in chain([wanted], names) if not folder.exists())


def clear(folder: Path) -> None:
    """Remove a run's files from `folder`, and nothing else. Raises OSError."""
    for table in (METRICS, LINKS, TRANSFERS, PARTS, QUEUES, MEMBERSHIP, CLASSES):
        growing_table.remove(folder / table)
    for name in (SUMMARY, *PLOTS, REPORT, CHECKPOINT, SCENARIO, MANIFEST):
        for file in (folder / name, folder / (name + TEMPORARY)):
            file.unlink(missing_ok=True)


def remove_checkpoint(folder: Path) -> None:
    """Remove that of a run, which then goes on no more; nothing happens where there is none. Raises OSError."""
    for file in (folder / CHECKPOINT, folder / (CHECKPOINT + TEMPORARY)):
        file.unlink(missing_ok=True)
