"""The page of an experiment: its table, figure and verdicts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd

from dlion_sim.analysis import Group, common_target, comparison, duration_until, final, group_runs, varying
from dlion_sim.errors import InputError
from dlion_sim.figures import (
    plot_accuracies,
    plot_accuracy_at,
    plot_batch_sizes,
    plot_deviation,
    plot_links,
    plot_time_to_accuracy,
    plot_trade_off,
)
from dlion_sim.results import WAN, Run, headings, traffic_of
from dlion_sim.results.atomic import replacing
from dlion_sim.results.numbers import in_bytes, percent
from dlion_sim.studies.reproduction.claims import Closer, Experiment
from dlion_sim.studies.reproduction.pages import PAGE, VERDICT_COLUMNS, markdown, write_page, write_verdicts
from dlion_sim.studies.reproduction.verdicts import Verdict, by_regime, judged

_TABLE = "table.csv"
_RUNS = "runs.csv"
_FIGURE = "figure"


def write_experiment(
    name: str, experiment: Experiment, runs: Sequence[Run], folder: Path, again: str, mark: str = ""
) -> list[Verdict]:
    """Write the results of an experiment to `folder`: a page, its tables as CSV, its figure as PNG and SVG.

    `again` is the command that repeats it; all verdicts get the `mark`. Returns the verdicts on its claims. Raises
    InputError if no run is completed, one cannot be read, or runs of a claim or of `closer` are missing.
    """
    groups = _with_short_names(group_runs(runs))
    if experiment.rates is not None:
        groups = by_regime(groups, experiment.rates)
    target = common_target(groups) if experiment.target is None else experiment.target
    verdicts = [verdict for claim in experiment.judged for verdict in judged(claim, groups, target)]
    single = _named_run(experiment.closer, runs) if experiment.closer else None
    table = _table(groups, target)
    folder.mkdir(parents=True, exist_ok=True)
    rows = pd.DataFrame([_row(verdict, mark) for verdict in verdicts], columns=VERDICT_COLUMNS)
    for name_of_file, content in ((_TABLE, table), (_RUNS, _each_run(groups, target))):
        with replacing(folder / name_of_file) as file:
            content.to_csv(file, index=False)
    write_verdicts(folder, rows)
    draw = _DRAWN[experiment.figure]
    for ending in ("png", "svg"):
        draw(groups, folder / f"{_FIGURE}.{ending}", target)
    closer = _draw_closer(experiment.closer, single, folder) if experiment.closer and single else []
    lines = [
        f"# {name}: {experiment.title}",
        f"**Repeats**: {experiment.repeats}",
        f"**The paper**: {experiment.paper}",
        f"**How sure that is**: {experiment.sure}",
        *([f"**Different here**: {experiment.differs}"] if experiment.differs else []),
        *([f"**Stand-in**: {experiment.stand_in}"] if experiment.stand_in else []),
        f"![{experiment.title}]({_FIGURE}.png)",
        markdown(table if "scenario" in varying(groups) else table.drop(columns="scenario")),
        "± are 95 % t-intervals over seeds; time: virtual seconds until the accuracy is "
        f"{percent(target)}, of seeds that got there in the brackets; p: paired t-test of the accuracy against the "
        "first row of the same environment, Holm-corrected.",
        *closer,
        *(["## Verdicts", markdown(_by_environment(rows))] if verdicts else []),
        *([experiment.found] if experiment.found else []),
        f"{_took(groups)} Again: `{again}`.",
    ]
    write_page(folder / PAGE, lines)
    return verdicts


def _took(groups: Sequence[Group]) -> str:
    """What a run cost: the means of the groups that took least and most."""
    seconds = [
        (fmean(run.summary["wall_seconds"] for run in group.completed if run.summary), group.labels["system"])
        for group in groups
        if group.completed
    ]
    (least, first), (most, last) = min(seconds), max(seconds)
    return f"A run took {least:.0f} s ({first}) to {most:.0f} s ({last}) to compute."


def _named_run(closer: Closer, runs: Sequence[Run]) -> Run:
    by_name = {run.folder.name: run for run in runs}
    if closer.run not in by_name:
        raise InputError(f"no run is named {closer.run!r}", path="closer.run", allowed=", ".join(by_name))
    return by_name[closer.run]


def _draw_closer(closer: Closer, run: Run, folder: Path) -> list[str]:
    """Draw the figures of one run to `folder`; returns their part of the page."""
    parts = [f"One of these runs, `{closer.run}`:"]
    for figure in closer.figures:
        _DRAWN_CLOSER[figure](run, folder / f"{figure}.png")
        parts.append(f"![{figure.replace('_', ' ')} of {closer.run}]({figure}.png)")
    return parts


def _with_short_names(groups: Sequence[Group]) -> list[Group]:
    """The groups without a suffix of their scenarios' names, after a comma, that all have."""
    names = [group.labels["scenario"].partition(", ") for group in groups]
    if len({rest for _, _, rest in names}) > 1:
        return list(groups)
    return [
        Group({**group.labels, "scenario": name}, group.runs) for group, (name, _, _) in zip(groups, names, strict=True)
    ]


def _table(groups: Sequence[Group], target: float) -> pd.DataFrame:
    """A row for each group: labels, the scenario among them also where all have the same one, then results as text."""
    traffic = traffic_of(run for group in groups for run in group.runs)
    labels = varying(groups)
    labels_of = _columns([*({"scenario"} - {*labels}), *labels, "system"])
    rows = []
    for group, row in zip(groups, comparison(groups, target).to_dict("records"), strict=True):
        half = row["final_high"] - row["final"]
        rows.append(
            {
                **{column: group.labels.get(key, "") for column, key in labels_of.items()},
                "seeds": row["seeds"],
                "accuracy (%)": _with_interval(100 * row["final"], 100 * half, "{:.1f}"),
                "time (s)": _time(row),
                "p": "" if math.isnan(row["p_holm"]) else f"{row['p_holm']:.3f}",
                f"{traffic.name} bytes": _bytes(row[traffic.total]),
                f"{traffic.name} bytes to {percent(target)}": _bytes(row[traffic.to_target]),
                "bytes in all": _bytes(row["bytes_sent"]) if traffic == WAN else "",
                "note": row["note"],
            }
        )
    return pd.DataFrame(rows).loc[:, lambda table: (table != "").any()]


def _each_run(groups: Sequence[Group], target: float) -> pd.DataFrame:
    """A row for each run that `_table` sums up, so that its statistics can be computed again without the runs."""
    labels_of = _columns(["scenario", *varying(groups), "system"])
    return pd.DataFrame(
        {
            **{column: group.labels.get(key, "") for column, key in labels_of.items()},
            "seed": seed,
            "accuracy (%)": math.nan if accuracy is None else round(100 * accuracy, 3),
            f"time to {percent(target)} (s)": duration.seconds if duration.reached else math.nan,
            "duration (s)": float(run.outcome["virtual_seconds"]),
            "WAN bytes": run.wan_bytes,
            "bytes in all": run.outcome["bytes_sent"],
            "computed in (s)": round(float(run.outcome["wall_seconds"]), 1),
        }
        for group in groups
        for (seed, _), run in group.samples.items()
        for accuracy, duration in [(final(run)["mean"], duration_until(run, target))]
    )


def _columns(keys: Sequence[str]) -> Mapping[str, str]:
    """Labels by the headings of their columns."""
    return {heading.replace("_", " "): key for key, heading in headings(dict.fromkeys(keys)).items()}


def _bytes(value: float) -> str:
    return "" if math.isnan(value) else in_bytes(value)


def _time(row: Mapping[Any, Any]) -> str:
    if not row["reached"]:
        return f"> {row['waited']:.0f}"
    return f"{row['time_bound']}{row['time']:.0f} ({row['reached']} of {row['seeds']})"


def _row(verdict: Verdict, mark: str) -> dict[str, str]:
    claim, difference = verdict.claim, verdict.difference
    points = claim.by in ("accuracy", "deviation")
    scale, unit = (100.0, " points") if points else (1.0, " x")
    ends = "" if math.isnan(difference.low) else f" [{scale * difference.low:.2f} to {scale * difference.high:.2f}]"
    value = "?" if math.isnan(difference.value) else f"{difference.bound}{scale * difference.value:.2f}{unit}{ends}"
    if claim.by == "accuracy":
        factor = f"{verdict.one / verdict.other - 1:+.0%}" if verdict.other > 0 else ""
    else:
        factor = "" if points or math.isnan(difference.value) else f"{difference.bound}{difference.value:.2g} x"
    return {
        "claim": claim.says,
        "where": verdict.where,
        "paper": claim.paper,
        "here": value,
        "factor": factor,
        "p": "" if math.isnan(verdict.p) else f"{verdict.p:.3f}",
        "direction": _marked(verdict.direction, mark),
    }


def _marked(direction: str, mark: str) -> str:
    """E.g. "same (one seed, short)" or "opposite (short)"."""
    if not mark:
        return direction
    return f"{direction[:-1]}, {mark})" if direction.endswith(")") else f"{direction} ({mark})"


def _by_environment(verdicts: pd.DataFrame) -> pd.DataFrame:
    """A row for each claim, with a column for each environment."""
    rows: dict[str, dict[str, str]] = {}
    for one in verdicts.to_dict("records"):
        row = rows.setdefault(one["claim"], {"claim": one["claim"], "the paper": one["paper"]})
        more = f", {one['factor']}" if one["factor"].endswith("%") else ""
        row[one["where"] or "here"] = f"{one['here']}{more}: {one['direction']}"
    return pd.DataFrame(rows.values()).fillna("").loc[:, lambda table: (table != "").any()]


def _with_interval(value: float, half: float, written: str) -> str:
    if math.isnan(value):
        return ""
    return written.format(value) + ("" if math.isnan(half) else f" ± {written.format(half)}")


def _accuracy_at(groups: Sequence[Group], file: Path, _: float) -> object:
    return plot_accuracy_at(
        groups, file, min(float(run.outcome["virtual_seconds"]) for each in groups for run in each.completed)
    )


_DRAWN: Mapping[str, Callable[[Sequence[Group], Path, float], object]] = {
    "accuracy": lambda groups, file, _: plot_accuracies(groups, file),
    "accuracy_at": _accuracy_at,
    "deviation": lambda groups, file, _: plot_deviation(groups, file),
    "time_to_accuracy": plot_time_to_accuracy,
    "trade_off": lambda groups, file, _: plot_trade_off(groups, file),
}

_DRAWN_CLOSER: Mapping[str, Callable[[Run, Path], object]] = {"batch_sizes": plot_batch_sizes, "links": plot_links}
