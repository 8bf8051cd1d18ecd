"""The table that compares groups of runs, with notes on its columns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.box import HEAVY_HEAD
from rich.console import Group as Lines
from rich.console import RenderableType
from rich.text import Text

from dlion_sim.cli.conventions import LIVE_NETWORK, WHY_NO_EXCHANGE
from dlion_sim.cli.fitting import Fitted
from dlion_sim.metric import ACCURACY, Metric
from dlion_sim.results import WAN
from dlion_sim.results.numbers import in_bytes, number, of_metric, percent

if TYPE_CHECKING:
    from dlion_sim.analysis import Group
    from dlion_sim.results import Run, Traffic

_SIGNIFICANT = 0.05
_NOTED = "!"
"""Marks systems of which a worker did not exchange, diverged, or a run did not complete."""
_UNFINISHED = ("interrupted", "failed", "running")


@dataclass(frozen=True)
class ComparisonTable:
    """A row for each group: its labels, and the results of its completed runs, as text."""

    title: str
    labels: Sequence[str]
    """Headings of the first columns."""
    columns: Sequence[str]
    """Headings of the numeric columns."""
    rows: Sequence[Sequence[str]]
    notes: Sequence[str]
    """Explanations of the columns."""
    important: Sequence[str]
    """Headings by priority in a narrow terminal."""

    def __rich__(self) -> RenderableType:
        """For a terminal: the columns that fit, and the notes."""
        table = Fitted(
            [*self.labels, *self.columns],
            self.rows,
            title=self.title,
            numbers=self.columns,
            names=len(self.labels),
            box=HEAVY_HEAD,
            important=self.important,
        )
        return Lines(table, *map(Text, self.notes))

    def markdown(self) -> str:
        """All columns, as a table of GitHub Markdown."""
        headings = [" ".join(heading.split()) for heading in (*self.labels, *self.columns)]
        aligned = ["---"] * len(self.labels) + ["---:"] * len(self.columns)
        lines = [_markdown_row(row) for row in (headings, aligned, *self.rows)]
        return "\n".join([*lines, "", *(f"- {note}" for note in self.notes)])


def comparison_table(groups: Sequence[Group], target: float, source: str = "") -> ComparisonTable:
    """The table of some groups; `source` is the origin of the target."""
    from dlion_sim.analysis import comparison, metric_name, metric_of, varying
    from dlion_sim.results import headings, traffic_of

    metric = metric_of(groups)
    traffic = traffic_of(run for group in groups for run in group.runs)
    compared = comparison(groups, target).to_dict("records")
    rows = [{str(column): value for column, value in row.items()} for row in compared]
    columns = {
        heading: cells
        for heading, cells in _columns(rows, metric_name(groups), metric, target, traffic).items()
        if any(cells)
    }
    keys = list(dict.fromkeys([*varying(groups), "system"]))
    lines = []
    for place, (group, row) in enumerate(zip(groups, rows, strict=True)):
        mark = f" {_NOTED}" if row["note"] else ""
        labels = [group.labels.get(key, "") + mark * (key == "system") for key in keys]
        lines.append([*labels, *(cells[place] or "-" for cells in columns.values())])
    of_target = [f"{of_metric(target, metric)}: {source}"] if source else []
    of_samples = _samples([run for group in groups for run in group.completed], metric)
    return ComparisonTable(
        title=", ".join({group.labels["scenario"]: None for group in groups}),
        labels=[heading.replace("_", " ") for heading in headings(keys).values()],
        columns=[*columns],
        rows=lines,
        notes=[*of_target, *of_samples, *_notes(rows, metric.name, traffic), *_ways(groups)],
        important=sorted(columns, key=lambda heading: _importance(heading, [*columns], traffic)),
    )


def _importance(heading: str, headings: Sequence[str], traffic: Traffic) -> tuple[int, int]:
    """Sort key of the columns in a narrow terminal: the metric (the column after the runs), then these."""
    firsts = (
        headings[1],
        "time to",
        "speed-up",
        f"{traffic.name}\nbytes",
        "cost to",
        "cost",
        "p",
        "lost",
        "online",
        "up",
    )
    rank = next((rank for rank, first in enumerate(firsts) if heading.startswith(first)), len(firsts))
    return rank, headings.index(heading)


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def _samples(runs: Sequence[Run], metric: Metric) -> Iterator[str]:
    """A note if evaluations do not use all samples."""
    partly = [run for run in runs if run.is_evaluated_in_part]
    counts = dict.fromkeys("{curve} of {full} samples".format(**run.manifest["evaluation_samples"]) for run in partly)
    if counts:
        some = " in some runs" * (len(partly) < len(runs))
        yield f"{metric.name} and time: on the first {' or '.join(counts)}{some}; summaries have it on all at the end"


def _ways(groups: Sequence[Group]) -> Iterator[str]:
    """A note if live runs, which have another network, are among others."""
    ways = {run.manifest.get("way", "simulate") for group in groups for run in group.runs}
    if "live" in ways and len(ways) > 1:
        yield f"{LIVE_NETWORK} as simulated and emulated runs have"


def _columns(
    rows: Sequence[Mapping[str, Any]], name: str, metric: Metric, target: float, traffic: Traffic
) -> dict[str, list[str]]:
    """Cells by heading; empty without a value."""
    written = "{:.1f}" if metric == ACCURACY else "{:.4g}"
    compared_with = {row["reference"] for row in rows if not math.isnan(row["p"])}
    return {
        "runs": [
            f"{row['runs']}" if row["runs"] == row["completed"] else _of(row, "completed", "runs") for row in rows
        ],
        name.replace(" ", "\n") + metric.unit: [_mean(written, row, "final", metric.scale) for row in rows],
        "last" + metric.unit.replace(" ", "\n"): [_known(written, metric.scale * row["last"]) for row in rows],
        f"time to {of_metric(target, metric)}\n(s)": [_marked(_time(row), row) for row in rows],
        "speed-up\n(pairs)": [_marked(_speedup(row, place), row) for place, row in enumerate(rows)],
        "p": ["ref." if place in compared_with else _p(row["p_holm"]) for place, row in enumerate(rows)],
        "lost": ["" if math.isnan(row["lost"]) else percent(row["lost"]) for row in rows],
        "completion\n(s)": [_number(row["completion"]) for row in rows],
        "99 %\n(s)": [_number(row["completion_p99"]) for row in rows],
        "online\n(%)": [_known("{:.1f}", 100 * row["online"]) for row in rows],
        "forgotten\n(points)": [_known("{:.1f}", 100 * row["forgetting"]) for row in rows],
        "adapts\n(s)": [_known("{:.1f}", row["adaptation"]) for row in rows],
        "up\n(%)": [_known("{:.1f}", 100 * row["up"]) for row in rows],
        "goodput\n(samples/s)": [_number(row["goodput"]) for row in rows],
        "work lost\n(s)": [_number(row["work_lost"]) for row in rows],
        "fetched": [_bytes(row["state_bytes"]) for row in rows],
        "rejoins\n(s)": [_number(row["to_join"]) for row in rows],
        "cost": [_number(row["cost"]) for row in rows],
        f"cost to {of_metric(target, metric)}": [_until(row, _number(row["cost_to_target"])) for row in rows],
        f"{traffic.name}\nbytes": [_bytes(row[traffic.total]) for row in rows],
        f"{traffic.name} bytes\nto {of_metric(target, metric)}": [
            _until(row, _bytes(row[traffic.to_target])) for row in rows
        ],
        "bytes\nin all": [_bytes(row["bytes_sent"]) if traffic == WAN else "" for row in rows],
    }


def _notes(rows: Sequence[Mapping[str, Any]], metric: str, traffic: Traffic) -> Iterator[str]:
    """Explanations of the columns that have values."""
    counts = [row[f"evaluations_{end}"] for row in rows for end in ("least", "most") if row["completed"]]
    if counts:
        many = f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
        seeds = ", over seeds ± its 95 % t-interval" if any(row["seeds"] > 1 for row in rows) else ""
        yield f"{metric}: mean of the last {many} evaluations{seeds}; last: of the very last one"
    if any(row["untrained"] for row in rows):
        yield "before training: the untrained model is as good as the target"
    if any(not math.isnan(row["time_high"]) for row in rows):
        yield "time: ± its 95 % t-interval, or the seconds between evaluations where these are more"
    if any(row["time_bound"] == "<=" for row in rows):
        yield "time: <= an upper bound, as nothing was evaluated in the half before it; ~: a speed-up of such times"
    if any(row["time_bound"] == ">" for row in rows):
        yield "time: > a bound, as seeds that missed the target count with the ends of their runs (restricted mean)"
    if any(not math.isnan(row["speedup"]) and row["reference"] != place for place, row in enumerate(rows)):
        yield "speed-up: over Baseline, geometric mean over pairs of a seed (0: of unlike seeds) [its 95 % t-interval]"
    if any(not math.isnan(row["p"]) for row in rows):
        yield f"p: paired t-test of the {metric} against that of ref., Holm-corrected; * below 0.05"
    if any(not math.isnan(row["cost"]) for row in rows):
        yield "cost: of machines' billed time and traffic between clouds; to a target: as if the run had ended there"
    if traffic == WAN and any(row["completed"] for row in rows):
        yield "WAN bytes: from one micro-cloud to another; in all: with those that stay inside a micro-cloud's LAN"
    if any(not math.isnan(row["online"]) for row in rows):
        yield "online: accuracy of samples before training on them; forgotten: the best earlier accuracy less the last"
    if any(not math.isnan(row["adaptation"]) for row in rows):
        yield "adapts: from the first samples of a class until its accuracy is nine tenths of that at the end"
    if any(not math.isnan(row["up"]) for row in rows):
        yield "up: share of time that workers were available; goodput: samples per second that reached the model"
        yield "work lost: computed in cut-off iterations; fetched: in state transfers; rejoins: until workers joined"
    if any(row["reference"] < 0 for row in rows):
        yield "several Baselines in one environment: nothing there is compared with them"
    if any(not math.isnan(row["completion"]) for row in rows):
        yield "lost: share of bytes that receivers did without; completion: of data messages, on average and of 99 %"
    if any("no exchange" in row["note"] for row in rows):
        yield f"{_NOTED} a worker never exchanged anything: {WHY_NO_EXCHANGE}"
    if any("diverged" in row["note"] for row in rows):
        yield f"{_NOTED} a worker diverged: its loss is ten times the initial one; a lower learning rate may help"
    for state in dict.fromkeys(each for row in rows for each in row["note"].split(", ") if each.endswith(_UNFINISHED)):
        yield f"{_NOTED} {state}: only completed runs count here"


def _marked(cell: str, row: Mapping[str, Any]) -> str:
    """The cell with a mark if the system's workers did not exchange."""
    return f"{cell} {_NOTED}" if cell and "no exchange" in row["note"] else cell


def _mean(written: str, row: Mapping[str, Any], name: str, unit: float = 1.0) -> str:
    half = unit * (row[f"{name}_high"] - row[name])
    return _known(written, unit * row[name]) + ("" if math.isnan(half) else f" ± {written.format(half)}")


def _time(row: Mapping[str, Any]) -> str:
    if row["seeds"] and not row["reached"]:
        return f"> {row['waited']:.1f} ({_of(row, 'reached', 'seeds')})"
    if row["untrained"] and row["untrained"] == row["seeds"]:
        return "before training"
    reached = f" ({_of(row, 'reached', 'seeds')})" if row["time_bound"] == ">" else ""
    return f"{row['time_bound']} {_mean('{:.1f}', row, 'time')}{reached}".lstrip()


def _until(row: Mapping[str, Any], text: str) -> str:
    """A quantity up to the target, if known, with its bound and marks."""
    bound = row["time_bound"] if row["time_bound"] == "<=" else ""
    return _marked(f"{bound} {text}".lstrip() if text else "", row)


def _speedup(row: Mapping[str, Any], place: int) -> str:
    if math.isnan(row["speedup"]):
        return ""
    ends = [row["speedup_low"], row["speedup_high"]]
    interval = "" if math.isnan(ends[0]) else " [{:.3g} to {:.3g}]".format(*ends)
    pairs = f" ({row['pairs']})" if row["reference"] != place else ""
    return f"{row['speedup_bound']} {row['speedup']:.2f}{interval}{pairs}".lstrip()


def _p(p: float) -> str:
    return _known("{:.3f}", p).replace("0.000", "<0.001") + "*" * (p < _SIGNIFICANT)


def _number(value: float) -> str:
    return "" if math.isnan(value) else number(value)


def _bytes(value: float) -> str:
    return "" if math.isnan(value) else in_bytes(value)


def _of(row: Mapping[str, Any], some: str, all_: str) -> str:
    return f"{row[some]} of {row[all_]}"


def _known(written: str, value: float) -> str:
    return "" if math.isnan(value) else written.format(value)
