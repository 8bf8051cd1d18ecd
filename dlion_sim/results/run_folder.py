"""Run folders: their files besides tables, finding them, and one writer at a time."""

from __future__ import annotations

import fcntl
import os
import re
import weakref
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count
from pathlib import Path

from dlion_sim.errors import InputError, printable
from dlion_sim.files import MANIFEST as MANIFEST
from dlion_sim.files import SCENARIO as SCENARIO
from dlion_sim.results import growing_table
from dlion_sim.results.atomic import TEMPORARY
from dlion_sim.results.tables import TABLES

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


def find_runs(paths: Iterable[Path]) -> list[Path]:
    """Every run folder that is one of the paths or below one, once, in the order of the paths and then of names.

    Raises InputError for a path with no run.
    """
    found: dict[Path, None] = {}
    for path in paths:
        below = sorted(_runs_below(path), key=_natural)
        if not below:
            problem = "holds no run" if path.is_dir() else "is not a run folder, nor a folder that holds some"
            raise InputError(problem, file=path, allowed=f"a folder with a {MANIFEST} in it or below it")
        found.update(dict.fromkeys(below))
    return list(found)


def run_names(folders: Sequence[Path]) -> list[str]:
    """A name for each of some different run folders: its path below the folder that holds them all."""
    parents = [os.path.abspath(folder.parent) for folder in folders]
    return [printable(Path(os.path.relpath(folder, os.path.commonpath(parents))).as_posix()) for folder in folders]


def _runs_below(path: Path) -> Iterator[Path]:
    # No recursion: folders may be nested more deeply than Python's calls.
    waiting = [path]
    while waiting:
        folder = waiting.pop()
        if holds_run(folder):
            yield folder
        elif os.path.isdir(folder):
            with os.scandir(folder) as entries:
                waiting += [folder / entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]


def _natural(path: Path) -> list[str | int]:
    """So that "seed2" comes before "seed10"; texts and numbers take turns."""
    return [int(part) if number % 2 else part for number, part in enumerate(re.split(r"(\d+)", str(path)))]


class FolderLock:
    """Holds an existing run folder until `close` or the end of the process, even by a kill.

    The folder itself is locked: no file is left in it. Raises InputError if another process holds it.
    """

    def __init__(self, folder: Path) -> None:
        descriptor = os.open(folder, os.O_RDONLY)
        self.close = weakref.finalize(self, os.close, descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            problem = "is being written by a run that still goes on"
            raise InputError(problem, file=folder, allowed="another folder, or waiting for its end") from None
        except OSError:
            pass  # Some network file systems lock no folders.
