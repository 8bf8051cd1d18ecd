"""Saying of a run that nobody is writing any more how it ended."""

from __future__ import annotations

from pathlib import Path

from dlion_sim.results import run_folder
from dlion_sim.results.atomic import json_bytes, write
from dlion_sim.results.reading import Run
from dlion_sim.results.summary import Status


def mark(folder: Path, status: Status, **facts: str) -> None:
    """Set the status in the manifest of the run in `folder`, and add what else is known of its end.

    Raises InputError where there is no run, and OSError where it cannot be written.
    """
    write(folder / run_folder.MANIFEST, json_bytes({**Run.open(folder).manifest, **facts, "status": status}))
