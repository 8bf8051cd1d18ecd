"""The page on all reproduced experiments and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from dlion_sim.errors import InputError
from dlion_sim.studies.reproduction.claims import Experiment
from dlion_sim.studies.reproduction.pages import PAGE, VERDICT_COLUMNS, VERDICTS, markdown, write_page
from dlion_sim.studies.reproduction.tables.table import PublishedTable
from dlion_sim.studies.reproduction.tables.writing import EQUAL
from dlion_sim.studies.reproduction.verdicts import DIRECTIONS, OWN


def write_collection(known: Mapping[str, Experiment | PublishedTable], folder: Path, again: str) -> None:
    """Write the page on all `known` experiments and tables with a folder of their name in `folder`.

    `again` is the command that repeats one. Raises InputError if one of these cannot be read.
    """
    verdicts = {name: _read(folder / name / VERDICTS) for name in known if (folder / name / VERDICTS).is_file()}
    experiments = {name: each for name, each in known.items() if name in verdicts and isinstance(each, Experiment)}
    tables = {name: each for name, each in known.items() if name in verdicts and isinstance(each, PublishedTable)}
    parts = ["# Papers' experiments, repeated"]
    if experiments:
        parts += [_INTRODUCTION.format(again), *_of_experiments(experiments, verdicts)]
    if tables:
        parts += ["## Papers' tables of numbers", _TABLES.format(again), markdown(_of_tables(tables, verdicts))]
    write_page(folder / PAGE, parts)


def _of_experiments(experiments: Mapping[str, Experiment], verdicts: Mapping[str, pd.DataFrame]) -> list[str]:
    rows = [
        {
            "experiment": f"[{name}]({name}/{PAGE})",
            "about": experiment.title,
            "repeats": experiment.repeats,
            "the paper reports": experiment.paper,
            "its claims here": _counted(_distinct(experiment, verdicts[name])),
        }
        for name, experiment in experiments.items()
    ]
    numbers = [
        {
            "experiment": name,
            "claim": claim,
            "the paper": paper,
            "here": "; ".join(_short(one) for _, one in of_claim.iterrows()),
        }
        for name, table in ((name, verdicts[name]) for name in experiments)
        for (claim, paper), of_claim in table[table["paper"] != ""].groupby(["claim", "paper"], sort=False)
    ]
    parts = [markdown(pd.DataFrame(rows))]
    if numbers:
        parts += ["## What papers have numbers for", _NUMBERS, markdown(pd.DataFrame(numbers))]
    return parts


def _of_tables(tables: Mapping[str, PublishedTable], verdicts: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "table": f"[{name}]({name}/{PAGE})",
            "about": table.title,
            "repeats": table.repeats,
            "the paper reports": table.paper,
            "as published": "; ".join(
                f"{by}: {of_way['direction'].str.startswith(EQUAL).sum()} of {len(of_way)}"
                for by, of_way in verdicts[name].groupby("where", sort=False)
            ),
        }
        for name, table in tables.items()
    )


_INTRODUCTION = (
    "Each is a sweep of `scenarios/reproduction/`, which says how sure each setting is, and is run again by `{}`. The "
    "papers' texts were not at hand, so most figures have no number here. A claim has the same direction here where "
    "the difference is significant and has the paper's sign: by a paired t-test over seeds (5 %, not corrected for the "
    "number of claims), and of times beyond what evaluations can tell; or where one side reached the target with every "
    "seed and the other with none. Runs whose rate is both the one for all and a system's own count once."
)


_TABLES = (
    "Times, bandwidths and averages, for which nothing is learned: by formulas, or by simulations of a sweep in "
    "`scenarios/reproduction/tables/`, again by `{}`. Pages say how near a number must be to count as published."
)


_NUMBERS = (
    "Accuracy relative to the other's, or how many times as fast the target was reached (> where not every seed of the "
    "other reached it, ~ where evaluations are far apart); with rates and environment where there are several. n.s.: "
    "not significant."
)


def _short(verdict: pd.Series) -> str:
    """A verdict in a cell: where, how much (which has the direction), and what makes it uncertain."""
    where = f"{verdict['where']}: " if verdict["where"] else ""
    return f"{where}{verdict['factor'] or verdict['here']}{_UNCERTAIN.get(verdict['direction'], '')}"


_UNCERTAIN = {
    "no significant difference": " (n.s.)",
    "unknown": " (unknown)",
    "same (one seed)": " (one seed)",
    "opposite (one seed)": " (one seed)",
}


def _read(file: Path) -> pd.DataFrame:
    """The verdicts of a file, all as text."""
    try:
        return pd.read_csv(file, dtype=str, keep_default_na=False)[[*VERDICT_COLUMNS]]
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"cannot be read: {error}", file=file, allowed="what `reproduce` writes") from None


def _distinct(experiment: Experiment, verdicts: pd.DataFrame) -> list[str]:
    """The directions; of runs that are in both regimes of learning rates, once."""
    rates = experiment.rates
    repeated = {claim.says for claim in experiment.judged if rates and rates.are_one([claim.of, claim.than])}
    is_own = verdicts["where"].str.split(", ").map(lambda labels: OWN in labels)
    return list(verdicts["direction"][~(is_own & verdicts["claim"].isin(repeated))])


def _counted(directions: Sequence[str]) -> str:
    known = dict.fromkeys([*DIRECTIONS, *directions])
    return ", ".join(f"{directions.count(each)} {each}" for each in known if each in directions) or "none judged"
