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


def of_further(name: str) -> list[str]:
    """The columns of the same figures of a further comparison (`emulation.further`)."""
    return [f"{figure}_{name}" for figure in FIGURES]


def distribution(table: pd.DataFrame) -> pd.DataFrame:
    """Median, 95th percentile and worst of each figure, over the scenarios that have it."""
    figures = table[list(FIGURES)]
    return pd.DataFrame(
        {"median": figures.median(), "95th percentile": figures.quantile(0.95), "worst": figures.max()}
    ).T


def markdown(table: pd.DataFrame) -> str:
    """The scenarios' figures, then their distribution, then what is beyond its mark, then what is not in it.

    `table` has the columns scenario, workers, those of FIGURES and of further comparisons, late, and problem: why there
    are no figures, or empty.
    """
    titles = [figure.title for figure in FIGURES.values()]
    known = _known(table)
    lines = [
        *_table(["scenario", "workers", *titles, "late"], map(_cells, table.to_dict("records"))),
        "",
        *_table(["over the scenarios", *titles], [*_distributed(table), _within(table), *_further(table, known)]),
    ]
    if known and (beyond := _beyond(table, known)):
        lines += ["", *_table(["beyond its mark", "", "simulated", *(TITLES[name] for name in known)], beyond)]
    if without := int((table["problem"] != "").sum()):
        lines += ["", f"Not in the distribution: {without} of {len(table)}, which have no figures."]
    return "\n".join(lines) + "\n"


def _cells(row: Mapping[Any, Any]) -> list[str]:
    about = [f"`{row['scenario']}`", str(row["workers"])]
    if row["problem"]:
        return [*about, str(row["problem"]).replace("|", "\\|"), *[""] * len(FIGURES)]
    return [*about, *(figure.text(row[key]) for key, figure in FIGURES.items()), _LATE.text(row["late"])]


def _distributed(table: pd.DataFrame) -> list[list[str]]:
    return [[str(name), *_texts(row)] for name, row in distribution(table).iterrows()]


def _within(table: pd.DataFrame, name: str = "") -> list[str]:
    """How many figures are within their tolerances, of simulations or of a further comparison."""
    cells = [f"{TITLES[name]}, within tolerance" if name else "within tolerance"]
    for figure, column in zip(FIGURES.values(), of_further(name) if name else FIGURES, strict=True):
        known = table[column].dropna()
        cells.append(f"{(known <= figure.mark).sum()} of {len(known)} within {figure.text(figure.mark)}")
    return cells


def _known(table: pd.DataFrame) -> list[str]:
    """The further comparisons of which there is anything."""
    return [name for name in TITLES if table[of_further(name)].notna().any(axis=None)]


def _further(table: pd.DataFrame, known: Sequence[str]) -> list[list[str]]:
    rows = []
    for name in known:
        of = distribution(table[of_further(name)].set_axis(list(FIGURES), axis="columns"))
        rows += [[f"{TITLES[name]}, {row}", *_texts(texts)] for row, texts in of.iterrows() if row != "worst"]
        rows.append(_within(table, name))
    return rows


def _beyond(table: pd.DataFrame, known: Sequence[str]) -> list[list[str]]:
    """What simulations are further off than they should be, beside the further comparisons."""
    return [
        [f"`{row['scenario']}`", figure.title, *(figure.text(row[each]) for each in (key, *of))]
        for row in table.to_dict("records")
        for key, figure in FIGURES.items()
        if row[key] > figure.mark
        for of in [[f"{key}_{name}" for name in known]]
    ]


def _texts(row: pd.Series) -> list[str]:
    return [figure.text(row[key]) for key, figure in FIGURES.items()]


def _table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (heading, ["---"] * len(heading), *rows)]


TITLES = {
    "neighbours": "neighbouring simulations",
    "again": "emulated again",
    "packets": "simulated by packets",
    "default": "simulated by default",
}
"""Of further comparisons."""
_LATE = Figure("late", 0.01, "{:.1%}")
