"""Finding run folders, and distinct names for them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from dlion_sim.errors import InputError, printable
from dlion_sim.results.run_folder import MANIFEST, holds_run


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
