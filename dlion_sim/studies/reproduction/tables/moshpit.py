"""Moshpit's own experiment: iterations until so many scalars are averaged (Ryabinin et al., NeurIPS'21).

The published values are the means over ten seeds in its notebook `plot_results.ipynb`: iterations until the variance
is below 1e-9, at most 50, on a grid of 32 x 32. A worker that fails leaves its cell empty for that iteration; an
all-reduce needs all workers. *Moshpit* has fixed cells, as in the notebook; *dealt anew* is the system `moshpit`.
A mean is as published within two standard errors of ten seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import sqrt

import numpy as np
import numpy.typing as npt
import pandas as pd

from dlion_sim.protocol.exchange.moshpit import grid
from dlion_sim.results import Run
from dlion_sim.studies.reproduction.tables.table import Check, Findings, PublishedTable

SIDE, MOST, PRECISE = 32, 50, 1e-9
PUBLISHED = {
    (512, 0.0): (1.0, 6.1, 8.2),
    (512, 0.01): (41.7, 6.6, 8.8),
    (768, 0.005): (28.7, 6.6, 6.6),
    (900, 0.0): (1.0, 6.4, 5.0),
    (900, 0.01): (50.0, 7.0, 6.5),
}
"""By workers and probability of failure: all-reduce, random groups, Moshpit."""
_PUBLISHED_SEEDS, _ROUNDING = 10, 0.05
WAYS = ("all-reduce", "random groups", "Moshpit", "dealt anew")
Groups = Iterator[npt.NDArray[np.intp]]
"""The group of each worker, one iteration after another."""


def one_group(workers: int, seed: int) -> Groups:
    """All workers."""
    while True:
        yield np.zeros(workers, np.intp)


def random_groups(workers: int, seed: int) -> Groups:
    """Groups of `SIDE`, drawn in each iteration."""
    rng = np.random.default_rng(seed)
    while True:
        yield rng.permutation(workers) // SIDE


def rows_and_columns(workers: int, seed: int) -> Groups:
    """Of a grid whose cells stay the first round's."""
    cells = grid(seed, workers, SIDE, 2, 1)
    number = 0
    while True:
        number += 1
        yield cells[:, 1 - number % 2]


def dealt_anew(workers: int, seed: int) -> Groups:
    """Of the grid of the system `moshpit`."""
    number = 0
    while True:
        number += 1
        yield grid(seed, workers, SIDE, 2, number)[:, 1 - number % 2]


def iterations(groups: Callable[[int, int], Groups], workers: int, fails: float, seed: int) -> int:
    """The iterations until the variance of all values is below `PRECISE`."""
    rng = np.random.default_rng(seed)
    values, number = rng.standard_normal(workers), 0
    for number, group in enumerate(groups(workers, seed), start=1):
        alive = rng.random(workers) >= fails
        if groups is not one_group or alive.all():
            members = np.bincount(group[alive], minlength=group.max() + 1).clip(min=1)
            means = np.bincount(group[alive], values[alive], minlength=group.max() + 1) / members
            values[alive] = means[group[alive]]
        if values.var() < PRECISE or number == MOST:
            break
    return number


def findings(_: Sequence[Run], seeds: int = 100) -> Findings:
    """Means over so many seeds."""
    rows, checks = [], []
    for (workers, fails), published in PUBLISHED.items():
        cells = [str(workers), f"{fails:g}"]
        for name, groups, known in zip(
            WAYS, (one_group, random_groups, rows_and_columns, dealt_anew), (*published, None), strict=True
        ):
            found = np.array([iterations(groups, workers, fails, seed) for seed in range(seeds)])
            error = found.std() / sqrt(_PUBLISHED_SEEDS)
            cells.append(f"{found.mean():.1f} ± {error:.1f}")
            if known is not None:
                cells.append(f"{known:g}")
                # Published means are rounded, and have an error of their own; equal within two standard errors.
                within = 1 + (2 * error + _ROUNDING) / known
                number = f"{name}, {workers} workers, {fails:g} failing: iterations"
                checks.append(Check(number, f"means of {seeds} seeds", known, float(found.mean()), within))
        rows.append(cells)
    columns = ["workers", "p(failure)"]
    for way in WAYS:
        columns += [way] if way == WAYS[-1] else [way, "published"]
    note = f"Means over {seeds} seeds, ± a standard error of ten seeds."
    return Findings([pd.DataFrame(rows, columns=columns)], checks, note)


TABLE = PublishedTable(
    title="Moshpit's averaging",
    repeats="Moshpit (NeurIPS'21), `plot_results.ipynb` of its code: iterations until values are averaged",
    paper="5 to 8 iterations on a grid of 32 x 32, with failures too, of which one stops an all-reduce",
    about=__doc__ or "",
    compute=findings,
    has_runs=False,
)
