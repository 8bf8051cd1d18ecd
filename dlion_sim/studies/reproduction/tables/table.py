"""A published table beside what is found here, with a check of each of its numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, log

import pandas as pd

from dlion_sim.errors import InputError
from dlion_sim.results import Run


@dataclass(frozen=True)
class Check:
    """A published number, and the one found in its place."""

    number: str
    """What it is, e.g. "hours of HALoS"."""
    by: str
    """The model that it is found by."""
    published: float
    """In the unit that `number` names."""
    found: float
    """In the same; infinite if it is beyond what was searched."""
    within: float
    """The ratio of the two, or its inverse, up to which they count as equal, e.g. 1.03."""

    @property
    def is_as_published(self) -> bool:
        """Whether both are above 0, finite, and no further apart than `within`."""
        return 0 < self.found < inf and abs(log(self.found / self.published)) <= log(self.within)


@dataclass(frozen=True)
class Findings:
    """The contents of a table's page."""

    tables: Sequence[pd.DataFrame]
    """Their cells as text."""
    checks: Sequence[Check]
    note: str = ""
    """A paragraph below the tables, in Markdown."""


@dataclass(frozen=True)
class PublishedTable:
    """A table of a paper."""

    title: str
    repeats: str
    """The paper's table."""
    paper: str
    """The paper's result."""
    about: str
    """Sources, models and findings, in Markdown."""
    compute: Callable[[Sequence[Run]], Findings]
    """From the completed runs of the table's sweep. Raises InputError for other runs."""
    has_runs: bool = True
    """Whether it needs simulations, which are the sweep of its name."""


def by_labels(runs: Sequence[Run], *axes: str) -> dict[tuple[str, ...], Run]:
    """Completed runs of a sweep by their labels of axes, which are named by the ends of their paths.

    Raises InputError for a run that is not completed, or has no such label.
    """
    found = {}
    for run in runs:
        labels = {axis.rpartition(".")[2]: label for axis, label in run.point.items()}
        if run.manifest["status"] != "completed" or not labels.keys() >= set(axes):
            allowed = f"completed runs of a sweep with the axes {', '.join(axes)}"
            raise InputError("not such a run", file=run.folder, allowed=allowed)
        found[tuple(labels[axis] for axis in axes)] = run
    return found
