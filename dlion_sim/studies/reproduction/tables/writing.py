"""Pages of published tables."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from pathlib import Path

import pandas as pd

from dlion_sim.results import Run
from dlion_sim.results.numbers import number
from dlion_sim.studies.reproduction.pages import (
    PAGE,
    VERDICT_COLUMNS,
    markdown,
    write_page,
    write_verdicts,
)
from dlion_sim.studies.reproduction.tables.table import Check, PublishedTable

EQUAL, OTHER = "as published", "not as published"
"""Directions of verdicts."""


def write_table(
    name: str, table: PublishedTable, runs: Sequence[Run], folder: Path, again: str, mark: str = ""
) -> None:
    """Write a table's page and verdicts to `folder`, from the runs of its sweep.

    `again` is the command that repeats it; all verdicts get the `mark`. Raises InputError if a run is missing or cannot
    be read.
    """
    findings = table.compute(runs)
    verdicts = pd.DataFrame([_verdict(check, mark) for check in findings.checks], columns=VERDICT_COLUMNS)
    folder.mkdir(parents=True, exist_ok=True)
    write_verdicts(folder, verdicts)
    others = verdicts[verdicts["direction"].str.startswith(OTHER)].drop(columns=["p", "direction"])
    lines = [
        f"# {name}: {table.title}",
        f"**Repeats**: {table.repeats}",
        f"**The paper**: {table.paper}",
        table.about.strip(),
        *map(markdown, findings.tables),
        *([findings.note] if findings.note else []),
        "## Verdicts",
        f"{len(verdicts) - len(others)} of {len(verdicts)} numbers are as published (`verdicts.csv`)."
        + (" The others:" if len(others) else ""),
        *([markdown(others)] if len(others) else []),
        f"Again: `{again}`.",
    ]
    write_page(folder / PAGE, lines)


def _verdict(check: Check, mark: str) -> dict[str, str]:
    direction = EQUAL if check.is_as_published else OTHER
    return {
        "claim": check.number,
        "where": check.by,
        "paper": f"{check.published:g}",
        "here": number(check.found) if isfinite(check.found) else "more",
        "factor": f"{check.found / check.published:.3g} x" if isfinite(check.found) else "",
        "p": "",
        "direction": f"{direction} ({mark})" if mark else direction,
    }
