"""How far simulations are from emulations: a row a scenario, and how its figures are distributed over all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd


@dataclass(frozen=True)
class Figure:
    """One way in which two runs may differ."""

    title: str
    mark: float
    """What it should be below."""
    written: str
    """How, as a format."""
    unknown: str = "-"

    def text(self, value: float) -> str:
        """As people read it."""
        return self.unknown if pd.isna(value) else self.written.format(value)


FIGURES: Mapping[str, Figure] = {
    "iteration_median": Figure("median iteration", 0.05, "{:.1%}"),
    "iterations": Figure("iterations", 0.05, "{:.1%}"),
    "bytes": Figure("bytes of a link", 0.05, "{:.1%}", "nothing exchanged"),
    "accuracy_at_end": Figure("points of accuracy at the end", 2.0, "{:.1f}"),
    "accuracy_on_the_way": Figure("on average", 2.0, "{:.1f}"),
    "accuracy_at_worst": Figure("at worst", 2.0, "{:.1f}"),
}
"""Those of a comparison's verdict, in the order of the columns."""

ITSELF: Sequence[str] = [f"{name}_itself" for name in FIGURES]
"""Columns of how far neighbouring simulations are from the simulated run, by the same figures."""


def distribution(table: pd.DataFrame) -> pd.DataFrame:
    """Median, 95th percentile and worst of each figure, over the scenarios that have it."""
    figures = table[list(FIGURES)]
    return pd.DataFrame(
        {"median": figures.median(), "95th percentile": figures.quantile(0.95), "worst": figures.max()}
    ).T


def markdown(table: pd.DataFrame) -> str:
    """The scenarios' figures, then their distribution, then what is not in it.

    `table` has the columns scenario, workers, those of FIGURES and ITSELF, late, and problem: why there are no figures,
    or empty.
    """
    titles = [figure.title for figure in FIGURES.values()]
    lines = [
        *_table(["scenario", "workers", *titles, "late"], map(_cells, table.to_dict("records"))),
        "",
        *_table(["over the scenarios", *titles], [*_distributed(table), _within(table), *_by_itself(table)]),
    ]
    if without := int((table["problem"] != "").sum()):
        lines += ["", f"Not in the distribution: {without} of {len(table)}, which have no figures."]
    return "\n".join(lines) + "\n"


def _cells(row: Mapping[Any, Any]) -> list[str]:
    about = [f"`{row['scenario']}`", str(row["workers"])]
    if row["problem"]:
        return [*about, str(row["problem"]).replace("|", "\\|"), *[""] * len(FIGURES)]
    return [*about, *(_cell(row, key, figure) for key, figure in FIGURES.items()), _LATE.text(row["late"])]


def _cell(row: Mapping[Any, Any], key: str, figure: Figure) -> str:
    """What is beyond the mark, with how far neighbouring simulations are from each other."""
    text, itself = figure.text(row[key]), row[f"{key}_itself"]
    return text if pd.isna(itself) or not row[key] > figure.mark else f"{text} ({figure.text(itself)})"


def _distributed(table: pd.DataFrame) -> list[list[str]]:
    return [[str(name), *_texts(row)] for name, row in distribution(table).iterrows()]


def _within(table: pd.DataFrame) -> list[str]:
    cells = ["within the mark"]
    for key, figure in FIGURES.items():
        known = table[key].dropna()
        cells.append(f"{(known <= figure.mark).sum()} of {len(known)} within {figure.text(figure.mark)}")
    return cells


def _by_itself(table: pd.DataFrame) -> list[list[str]]:
    """How far simulations are from each other, and how many figures are within the mark or no further than that."""
    if table[ITSELF].isna().all(axis=None):
        return []
    near = table[ITSELF].set_axis(list(FIGURES), axis="columns").quantile(0.95)
    told = [["neighbouring simulations, 95th percentile", *_texts(near)]]
    cells = ["within the mark or that of its neighbours"]
    for (key, figure), itself in zip(FIGURES.items(), ITSELF, strict=True):
        known = table[[key, itself]].dropna(subset=key)
        near_enough = (known[key] <= figure.mark) | (known[key] <= known[itself])
        cells.append(f"{near_enough.sum()} of {len(known)}")
    return [*told, cells]


def _texts(row: pd.Series) -> list[str]:
    return [figure.text(row[key]) for key, figure in FIGURES.items()]


def _table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (heading, ["---"] * len(heading), *rows)]


_LATE = Figure("late", 0.01, "{:.1%}")
