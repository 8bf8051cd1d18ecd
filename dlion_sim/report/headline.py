"""The summary of a run: a few facts and its main stall."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from dlion_sim.analysis import duration_until
from dlion_sim.analysis.stalls.attribution import stalls, summary_sentence
from dlion_sim.results import TESTS, Run, early_end
from dlion_sim.results.numbers import in_bytes, number, of_metric

_MAX_STEPS = 100_000
"""The most iterations of all workers for which causes of waits are searched; else only the waiting time is given."""

Fact = dict[str, str]
"""A `label`, its `value`, and a `note`."""


def headline(run: Run, metrics: pd.DataFrame) -> dict[str, Any]:
    """The `facts`, the main stall (`bottleneck`), and `warnings`."""
    return {
        "facts": list(_facts(run)),
        "bottleneck": _bottleneck(run, metrics),
        "warnings": list(_warnings(run)),
    }


def _facts(run: Run) -> Iterator[Fact]:
    summary = run.summary
    if summary is None:
        yield _fact("Status", run.manifest["status"], "no summary")
        return
    metric, last = run.metric, summary[run.metric.key]
    if last["mean"] is not None:
        of_workers = [value for value in last.get("per_worker", ()) if value is not None]
        ends = [metric.written(end(of_workers)) for end in (min, max)] if len(of_workers) > 1 else []
        spread = f"{' to '.join(ends)} over the workers, " if ends else ""
        yield _fact(
            f"{run.evaluated_on} {metric.name}", metric.written(last["mean"]), f"{spread}at the end{_samples(run)}"
        )
    yield from _time_to_target(run, summary)
    clock = "virtual time" if run.is_virtual else "time"
    iterations = f"{number(summary['iterations']['mean'])} iterations per worker"
    yield _fact(clock, f"{number(summary['virtual_seconds'])} s", iterations)
    sent, by = in_bytes(summary["bytes_sent"]), f"by {len(run.manifest['workers'])} workers"
    if run.has_wan:
        yield _fact("sent over the WAN", in_bytes(run.wan_bytes), f"of {sent} in all, {by}")
    else:
        yield _fact("sent over the LAN", sent, by)
    if cost := summary.get("cost"):
        traffic = f", traffic {number(cost['egress'])}" if "egress" in cost else ""
        yield _fact("cost", number(cost["total"]), f"machines {number(cost['machines'])}{traffic}")
        if "energy_kwh" in cost:
            carbon = f"{number(cost['co2_kg'])} kg CO2" if "co2_kg" in cost else ""
            yield _fact("energy", f"{number(cost['energy_kwh'])} kWh", carbon)


def _samples(run: Run) -> str:
    """The number of samples of evaluations, if not all, and the result on all samples."""
    if not run.is_evaluated_in_part:
        return ""
    samples = run.manifest["evaluation_samples"]
    full = (run.summary or {})[f"full_{run.metric.key}"]["mean"]
    on_all = "" if full is None else f"; {run.metric.written(full)} on all {samples['full']}"
    return f", on {samples['curve']} samples{on_all}"


def _time_to_target(run: Run, summary: Mapping[str, Any]) -> Iterator[Fact]:
    """The time to the scenario's target, or else to the best reached one of the summary."""
    metric, times = run.metric, summary[f"time_to_{run.metric.key}"]
    reached = [float(target) for target, time in times.items() if time is not None]
    target = run.target if run.target is not None else metric.best(reached) if reached else None
    if target is None:
        return
    duration = duration_until(run, float(target))
    value = duration.text if duration.reached else "not reached"
    alone = len(run.without_exchange) == len(run.manifest["workers"])
    notes = ["the scenario's target"] * (run.target is not None) + ["without an exchange"] * alone
    yield _fact(f"time to {of_metric(float(target), metric)}", value, ", ".join(notes))


def _bottleneck(run: Run, metrics: pd.DataFrame) -> str:
    steps = ~metrics["kind"].isin(TESTS)
    if not steps.any():
        return ""
    if steps.sum() <= _MAX_STEPS:
        return f"Stalls: {summary_sentence(stalls(run))}."
    seconds = metrics.loc[steps].groupby("worker")[["compute_seconds", "wait_seconds"]].sum()
    shares = seconds["wait_seconds"] / seconds.sum(axis=1).where(lambda total: total > 0, 1.0)
    name = run.manifest["workers"][int(str(shares.idxmax()))]
    return f"Workers wait {shares.mean():.0%} of their time on average, and {name} most: {shares.max():.0%}."


def _warnings(run: Run) -> Iterator[str]:
    status = run.manifest["status"]
    if status != "completed":
        reason = f"failed: {run.summary['stopped_by']}" if status == "failed" and run.summary else status
        yield f"Results are incomplete: the run {early_end(run) or reason}."
    if problem := run.manifest.get("problem"):
        yield str(problem)
    if run.without_exchange:
        yield f"Workers without an exchange: {', '.join(run.without_exchange)}."
    if run.diverged:
        yield f"Diverged workers: {', '.join(run.diverged)}."


def _fact(label: str, value: str, note: str) -> Fact:
    return {"label": label, "value": value, "note": note}
