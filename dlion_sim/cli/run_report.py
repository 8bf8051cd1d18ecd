"""The report of a run: the workers' table, and lines on its results."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from dlion_sim.analysis import duration_until
from dlion_sim.analysis.completion import by_kind
from dlion_sim.analysis.outages import Interval, clipped, path_outages, process_outages
from dlion_sim.analysis.statistics import Duration
from dlion_sim.analysis.timeline import spans, waited_most_for
from dlion_sim.cli.conventions import LIVE_NETWORK, some, why_no_exchange
from dlion_sim.metric import ACCURACY, Metric
from dlion_sim.results import LAN, WAN, Run, participants, scenario_label
from dlion_sim.results.cost import spot_machines
from dlion_sim.results.numbers import in_bytes, number, percent
from dlion_sim.results.run_folder import SCENARIO
from dlion_sim.scenario import DURATION

_LITTLE_WAITING = 0.1
"""Minimum share of a worker's time that is reported."""
_TIMES_SHOWN, _WAITS_SHOWN = 4, 4
_MOST_CONSTANT = 0.5
"""Share of the compute time from which its constant part is reported."""
_LATE_SHARE = 0.01
"""Minimum share of the compute time from which lateness is reported."""

_STOPS = {
    "iterations": "after all iterations",
    "target_accuracy": "at the target accuracy",
    "target": "at the target",
    "interrupt": "interrupted",
    "pause": "at the requested pause",
    "stall": "stalled: no worker can continue, as links or machines that they wait for are permanently down",
}


def run_report(run: Run) -> RenderableType:
    """The workers' table of a run, and its results."""
    summary = run.summary or {}
    iterations = run.iterations()
    totals = {"WAN\nbytes": run.wan_bytes, "bytes\nin all": summary["bytes_sent"]}
    if not run.has_wan:
        totals = {"LAN\nbytes": summary["bytes_sent"]}
    sent = run.links().groupby("sender")[[WAN.links, LAN.links][-len(totals) :]].sum()
    metric = run.metric
    last = summary[metric.key]
    scores = last["per_worker"]
    table = Table(title=f"{scenario_label(run.manifest)} · {run.system} · seed {summary['seed']}", title_justify="left")
    table.add_column("worker")
    score = f"{run.evaluated_on} {metric.name}".replace(" ", "\n")
    for heading in ("iterations", "batch size\nlast (range)", "computing", *totals, score):
        table.add_column(heading, justify="right")
    for worker, name in enumerate(run.manifest["workers"]):
        own = iterations[iterations["worker"] == worker]
        table.add_row(
            name,
            str(summary["iterations"]["per_worker"][worker]),
            _batch_sizes(own["batch_size"]),
            f"{own['compute_seconds'].sum() / max(summary['virtual_seconds'], 1e-9):.0%}",
            *(in_bytes(int(sent[column].get(worker, 0))) for column in sent),
            _written(metric, scores[worker] if scores else None) + " diverged" * (worker in summary["diverged"]),
        )
    table.add_section()
    table.add_row(
        "mean",
        f"{summary['iterations']['mean']:.1f}",
        "",
        "",
        *(in_bytes(total // len(scores or [1])) for total in totals.values()),
        _written(metric, last["mean"]),
    )
    of_packets = [_packets(run, transport)] if (transport := summary.get("transport")) else []
    return Group(table, *of_packets, *(Text(line) for line in _lines(run, summary)))


def _batch_sizes(sizes: pd.Series[float]) -> str:
    """The batch size of a worker's last iteration, and the range if it varied."""
    if sizes.empty:
        return "-"
    varied = f" ({sizes.min():.0f}-{sizes.max():.0f})" if sizes.nunique() > 1 else ""
    return f"{sizes.iloc[-1]:.0f}{varied}"


def _packets(run: Run, transport: Mapping[str, Any]) -> Table:
    """Statistics of messages sent in packets, by kind if recorded."""
    caption = "lost: share of bytes that receivers did without, unsent too; ms: until messages were complete"
    table = Table(box=SIMPLE_HEAD, caption=caption)
    table.add_column("in packets")
    for heading in ("messages", "lost", "unsent", "resent", "mean ms", "50 %", "99 %"):
        table.add_column(heading, justify="right")
    kinds: dict[Any, Any] = by_kind(run).to_dict("index")
    for kind, row in {**kinds, "all": {**transport, **transport["completion"]}}.items():
        shares = [percent(round(row[share], 4)) for share in ("lost", "saved", "resent")]
        seconds = ["-" if row[each] is None else number(1000 * row[each]) for each in ("mean", "p50", "p99")]
        table.add_row(kind, f"{row['messages']:.0f}", *shares, *seconds)
    return table


def _lines(run: Run, summary: Mapping[str, Any]) -> list[str]:
    metric, rate = run.metric, summary["samples_per_wall_second"] or 0
    sent = in_bytes(summary["bytes_sent"])
    of_wan = (
        f"{in_bytes(run.wan_bytes)} sent over the WAN, {sent} in all" if run.has_wan else f"{sent} sent over the LAN"
    )
    did = f"{summary['samples']} samples ({rate:.0f} per second), {of_wan}"
    if run.is_virtual:
        virtual, share = summary["virtual_seconds"], summary["evaluation_share"] or 0
        lines = [f"{virtual:g} s virtual in {summary['wall_seconds']:.1f} s, {did}; evaluation took {share:.0%}"]
    else:
        lines = [f"{summary['wall_seconds']:.1f} s, {did}"]
        if run.manifest["way"] == "live":
            lines.append(LIVE_NETWORK)
    if summary["stopped_by"] in _STOPS:
        lines.append(f"ended {_STOPS[summary['stopped_by']]}")
    if run.diverged:
        lines.append(f"diverged: {some(run.diverged)}: the {metric.name} says nothing of the system")
    if dropped := summary.get("dropped_samples"):
        lines.append(f"what was learned from {dropped / summary['samples']:.1%} of the samples reached no other worker")
    lines += [*_events(run), *_costs(summary), *_constant_compute(run), *_where_time_went(run), *_waits(run)]
    times = summary[f"time_to_{run.metric.key}"]
    whole = "{:.0%}".format if metric == ACCURACY else metric.written
    reached = [whole(target) + _when(duration_until(run, target)) for target in _best_by_time(metric, times)]
    missed = [f"{whole(float(target))} not reached" for target, time in times.items() if time is None]
    if shown := [*reached[-_TIMES_SHOWN:], *missed[:1]]:
        alone = ", each worker alone" if len(run.without_exchange) == len(run.manifest["workers"]) else ""
        lines.append(f"{run.evaluated_on} {metric.name} {', '.join(shown)}{alone}")
    if run.is_evaluated_in_part:
        samples = run.manifest["evaluation_samples"]
        on = f"the first {samples['curve']} of {samples['full']} samples"
        full = _written(metric, summary[f"full_{metric.key}"]["mean"])
        lines.append(f"{metric.name} is on {on}; on all at the end: {full}")
    if run.target is not None and times.get(str(run.target)) is None:
        lines.append(f"the target {metric.name}, {metric.written(run.target)}, was not reached")
    if run.without_exchange:
        lines.append(f"never exchanged anything: {some(run.without_exchange)}; {why_no_exchange(run)}")
    return [*lines, *_lateness(run), f"run folder: {run.folder}", f"plot: {run.plot}"]


def _best_by_time(metric: Metric, times: Mapping[str, float | None]) -> list[float]:
    """Reached targets, only the best one of each time."""
    at: dict[float, list[float]] = {}
    for target, time in times.items():
        if time is not None:
            at.setdefault(time, []).append(float(target))
    return [metric.best(at[time]) for time in sorted(at)]


def _when(duration: Duration) -> str:
    return f" {duration.text}" if duration.is_untrained else f" at {duration.text}"


def _costs(summary: Mapping[str, Any]) -> Iterator[str]:
    """The cost of a run with prices, and its parts."""
    cost = summary.get("cost")
    if cost is None:
        return
    parts = [f"machines {number(cost['machines'])} ({number(cost['machine_hours'])} hours billed)"]
    if "egress" in cost:
        parts.append(f"traffic between clouds {number(cost['egress'])} ({in_bytes(1e9 * cost['egress_gb'])})")
    if "energy_kwh" in cost:
        parts.append(f"{number(cost['energy_kwh'])} kWh")
    if "co2_kg" in cost:
        parts.append(f"{number(cost['co2_kg'])} kg CO2")
    yield f"cost {number(cost['total'])}: {', '.join(parts)}"


def _constant_compute(run: Run) -> Iterator[str]:
    """That most of the computing is the part which is the same on all machines, where machines differ."""
    given = run.scenario.get("workload", {}).get("compute_time", {}).get("alpha")
    mean = run.iterations()["compute_seconds"].mean()
    groups = [group for cloud in run.scenario.get("cluster", {}).get("clouds", []) for group in cloud["workers"]]
    if run.is_virtual and given and len({str(group.get("compute")) for group in groups}) > 1:
        share = DURATION.parse(given) / mean
        if share > _MOST_CONSTANT:
            alpha = f"`workload.compute_time.alpha` ({given})"
            yield f"{min(share, 1):.0%} of the computing time is {alpha}, which does not depend on the machine"


def _where_time_went(run: Run) -> Iterator[str]:
    """The worker that waits most, or is down most."""
    summary = run.summary or {}
    spent = pd.DataFrame(summary.get("spent", {}))
    shares = spent.div(spent.sum(axis=1), axis=0).dropna()
    waiting = shares.reindex(columns=["input", "wait"], fill_value=0.0).sum(axis=1)
    away = 1 - pd.Series(summary.get("availability", {}).get("up", []), dtype=float)
    if len(away) and away.max() >= max([_LITTLE_WAITING, *waiting]):
        name = run.manifest["workers"][int(str(away.idxmax()))]
        yield f"{name} is away {away.max():.0%} of the time; {_stalls_command(run)} shows the cost"
    elif len(waiting) and waiting.max() >= _LITTLE_WAITING:
        worst = int(str(waiting.idxmax()))
        fed = f", {shares['input'][worst]:.0%} for samples" if shares["input"][worst] >= _LITTLE_WAITING else ""
        name = run.manifest["workers"][worst]
        yield f"{name} waits {waiting.max():.0%} of its time{fed}; {_stalls_command(run)} shows the causes"


def _stalls_command(run: Run) -> str:
    return f"`dlion stalls {shlex.quote(str(run.folder / SCENARIO))} -o DIR`"


def _waits(run: Run) -> Iterator[str]:
    """The participants that workers waited for most, with the longest waits."""
    waited = waited_most_for(spans(run.metrics())).sort_values("seconds", ascending=False)
    names = participants(run.manifest)
    totals = waited.groupby("peer")["seconds"].sum().sort_values(ascending=False)
    for peer in totals.index[:_WAITS_SHOWN]:
        own = waited[waited["peer"] == peer]
        of_workers = zip(own.index, own["seconds"], strict=True)
        waits = [f"{names[worker]} {seconds:.3g} s" for worker, seconds in of_workers]
        more = [f"{len(waits) - _WAITS_SHOWN} more"] if len(waits) > _WAITS_SHOWN else []
        yield f"waited most for {names[peer]} ({own['reason'].iloc[0]}): {', '.join([*waits[:_WAITS_SHOWN], *more])}"


def _lateness(run: Run) -> list[str]:
    """A line if real computations took considerably longer than modelled."""
    late = (run.summary or {}).get("late")
    if not late or late["seconds_late"] <= _LATE_SHARE * run.iterations()["compute_seconds"].sum():
        return []
    return [
        f"computations were late {late['late']} times of {late['computations']}, by up to "
        f"{late['most_seconds_late']:.2g} s: a machine is too slow or too busy"
    ]


def _written(metric: Metric, value: float | None) -> str:
    return "-" if value is None else metric.written(value)


_HOUR = 3600.0


def _events(run: Run) -> Iterator[str]:
    """Lines on outages, joins, lost work and spot machines, if any. Raises InputError if the run cannot be read."""
    summary = run.summary or {}
    end, names = float(summary["virtual_seconds"]), participants(run.manifest)
    away = {names[number]: spans for number, spans in process_outages(run).items() if number < len(names)}
    if away:
        yield f"away: {some([f'{name} {_times(spans, end)}' for name, spans in away.items()])}"
    if availability := summary.get("availability"):
        yield from _joins(run, availability)
        yield from _losses(availability)
    down = {f"{one} to {other}": spans for (one, other), spans in path_outages(run).items()}
    path_lines = [f"{path} {_times(spans, end)}" for path, spans in down.items() if any(clipped(spans, 0, end))]
    if path_lines:
        yield f"paths down: {some(path_lines)}"
    if not (away or path_lines) and "availability" in run.scenario:
        yield f"no outage of `availability` began within the run's {number(end)} s"
    yield from _spot(run, away, end)


def _times(spans: Sequence[Interval], end: float) -> str:
    """Number and total duration of outages until the run's end (s)."""
    known = list(clipped(spans, 0.0, end))
    often = "once" if len(known) == 1 else f"{len(known)} times"
    still = ", and at the end" if any(until > end for _, until in spans) else ""
    return f"{often}, {number(sum(until - since for since, until in known))} s{still}"


def _joins(run: Run, availability: Mapping[str, Any]) -> Iterator[str]:
    changes = run.membership()["what"].value_counts()
    joined, restarts = int(changes.get("joined", 0)), int(changes.get("begins_anew", 0))
    if joined:
        seconds = availability.get("to_join", {}).get("mean")
        after = "" if seconds is None else f", {number(seconds)} s after its process began on average"
        fetched = (
            f", {in_bytes(availability['state_bytes'])} of state fetched" if availability.get("state_bytes") else ""
        )
        yield f"joined: {'once' if joined == 1 else f'{joined} times'}{after}{fetched}"
    if restarts:
        yield f"training began anew {'once' if restarts == 1 else f'{restarts} times'}, as no worker had any state left"


def _losses(availability: Mapping[str, Any]) -> Iterator[str]:
    computed, messages = availability.get("computed", 0), availability.get("messages", {})
    wasted = computed - availability.get("useful", computed)
    parts = [
        *([f"{number(availability['lost_seconds'])} s of computing"] if availability.get("lost_seconds") else []),
        *([f"{wasted} of {computed} samples wasted"] if wasted else []),
        *(f"{_counted(messages[what], 'message')} {what}" for what in ("cut", "refused") if messages.get(what)),
    ]
    if parts:
        yield f"work lost: {', '.join(parts)}"


def _spot(run: Run, away: Mapping[str, Sequence[Interval]], end: float) -> Iterator[str]:
    tariff = run.manifest.get("tariff")
    names = participants(run.manifest)
    machines = [names[number] for number in spot_machines(tariff) if number < len(names)] if tariff else []
    if machines:
        gone = math.fsum(until - since for name in machines for since, until in clipped(away.get(name, ()), 0.0, end))
        hours = len(machines) * end / _HOUR
        there = f"{number(hours - gone / _HOUR)} of {number(hours)} hours"
        none = "" if gone else "; no preemption: those are what `availability` simulates"
        yield f"spot: {_counted(len(machines), 'machine')}, there for {there}{none}"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"
