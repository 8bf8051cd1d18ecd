"""Parts that result pages share."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from dlion_sim.results.atomic import replacing

PAGE = "README.md"
VERDICTS = "verdicts.csv"
VERDICT_COLUMNS = ("claim", "where", "paper", "here", "factor", "p", "direction")
"""Columns of verdicts.csv."""


def markdown(table: pd.DataFrame) -> str:
    """A table in Markdown."""
    lines = [list(table.columns), ["---"] * len(table.columns), *table.astype(str).to_numpy().tolist()]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def write_page(file: Path, parts: Iterable[str]) -> None:
    """Write a page of these paragraphs."""
    with replacing(file) as temporary:
        temporary.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def write_verdicts(folder: Path, rows: pd.DataFrame) -> None:
    """Write verdicts.csv."""
    with replacing(folder / VERDICTS) as file:
        rows.to_csv(file, index=False)
