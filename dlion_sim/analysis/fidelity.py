"""How far a simulated run and a real one of the same scenario are apart."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dlion_sim.analysis.detection import compare_delays, furthest_apart
from dlion_sim.errors import InputError
from dlion_sim.metric import Metric
from dlion_sim.results import Run

_ALIKE = 1 + 1e-9
"""Clocks' rounding apart."""


@dataclass(frozen=True)
class Fidelity:
    """What both runs measured, and how that compares; seconds, bytes and fractions.

    Of each quantity the tables have the columns `simulated`, `real` and `ratio` (real / simulated) below its name.

    Iterations and messages are whole: at any one instant a run may be one of them ahead of another that is milliseconds
    slower, which of 20 is 5 %. So paces and throughputs are not taken at the end: they are what was done since the
    start, by the time, both averaged over the second half of the time that both ran.
    """

    workers: pd.DataFrame
    """By worker: iterations, pace (a second), iteration_median and iteration_p95 (s), staleness (iterations)."""
    links: pd.DataFrame
    """By sender and receiver: bytes, messages, throughput (bytes a second); none where nothing was exchanged."""
    metric: Metric
    """What evaluations are by."""
    evaluations: pd.DataFrame
    """By time (s): the metric's mean over the workers, simulated and real, and the difference."""
    delays: pd.DataFrame
    """By what (lost, found, joined), participant, peer and number of the time: how many seconds it took, simulated and
    real; see `compare_delays`. None where all are there all the time."""
    late: float
    """Of the node that was latest, the part of the time by which its computations took longer than they are modelled:
    what that delays says nothing of the simulator. NaN where they are not held to the model."""

    @property
    def verdict(self) -> Mapping[str, float]:
        """How far apart: relative differences of the worker or link that differs most, and accuracies' in points.

        Another metric's are relative to the simulated, and their keys begin with `metric`.

        `iterations` and `bytes` are those of paces and throughputs. Each is held against the simulated one or, where
        this is more, against a tenth of the mean of all: a link that carries but control messages may carry twice as
        many without any effect. The metric is compared at the end; on the way, which is the mean of the differences
        at all evaluations; and at worst, at any of them. NaN is what cannot be told; of bytes, because nothing was
        exchanged.

        `to_notice` and `to_rejoin`, where somebody went or came, are the greatest differences of what that took,
        relative to the simulated time or, where this is more, to 2 s: up to a tenth is 10 %, or 0.2 s.
        """
        apart = self.evaluations["difference"].abs()
        key = self.metric.key
        off = 100 * apart if key == "accuracy" else apart / self.evaluations["simulated"].abs()
        return {
            "iteration_median": float((self.workers["iteration_median"]["ratio"] - 1).abs().max()),
            "iterations": _off(self.workers, "pace"),
            "bytes": _off(self.links, "throughput"),
            f"{key}_at_end": float(off.iloc[-1]) if len(off) else math.nan,
            f"{key}_on_the_way": float(off.mean()) if len(off) else math.nan,
            f"{key}_at_worst": float(off.max()) if len(off) else math.nan,
            **self._apart_in_delays,
        }

    @property
    def _apart_in_delays(self) -> Mapping[str, float]:
        if self.delays.empty:
            return {}
        return {
            "to_notice": furthest_apart(self.delays, "lost"),
            "to_rejoin": furthest_apart(self.delays, "found", "joined"),
        }

    @property
    def document(self) -> dict[str, Any]:
        """All of it as JSON can say it, which knows no NaN: null."""
        return {
            "verdict": _jsonable(self.verdict),
            **_jsonable({"late": self.late}),
            "workers": _records(self.workers),
            "links": _records(self.links),
            self.metric.key: _records(self.evaluations),
            **({"delays": _records(self.delays)} if len(self.delays) else {}),
        }


def compare(simulated: Run, real: Run) -> Fidelity:
    """Compare two runs of one scenario, over the time that both of them ran.

    Raises InputError where they are not of the same workers, were not evaluated on the same set by the same metric, or
    one of them cannot be read or ended before it began.
    """
    if simulated.manifest["workers"] != real.manifest["workers"]:
        raise InputError("has other workers", file=real.folder, allowed=f"those of {simulated.folder}")
    if simulated.evaluated_on != real.evaluated_on:
        problem = f"was evaluated on the {real.evaluated_on} set"
        raise InputError(problem, file=real.folder, allowed=f"the {simulated.evaluated_on} set, as {simulated.folder}")
    if simulated.metric != real.metric:
        allowed = f"{simulated.metric.name}, as {simulated.folder}"
        raise InputError(f"was evaluated by {real.metric.name}", file=real.folder, allowed=allowed)
    end = min(_end(simulated), _end(real))
    return Fidelity(
        workers=_side_by_side(_workers(simulated, end), _workers(real, end)),
        links=_side_by_side(_links(simulated, end), _links(real, end)),
        metric=simulated.metric,
        evaluations=_evaluations(simulated, real, end),
        delays=compare_delays(simulated, real, end),
        late=_late(real),
    )


def _end(run: Run) -> float:
    times = run.metrics()["virtual_time"]
    if times.empty:
        raise InputError("has measured nothing", file=run.folder)
    return float(times.max())


def _workers(run: Run, end: float) -> pd.DataFrame:
    iterations = run.iterations()
    iterations = iterations[iterations["virtual_time"] <= end]
    by_worker = iterations.groupby("worker")
    lasted = by_worker["virtual_time"].diff()
    # The part of the second half in which an iteration was over.
    over = ((end - iterations["virtual_time"]) / (end / 2)).clip(upper=1.0)
    workers = pd.Index(range(len(run.manifest["workers"])), name="worker")
    return pd.DataFrame(
        {
            "iterations": by_worker.size().reindex(workers, fill_value=0),
            "pace": over.groupby(iterations["worker"]).sum().reindex(workers, fill_value=0) / (0.75 * end),
            "iteration_median": lasted.groupby(iterations["worker"]).median(),
            "iteration_p95": lasted.groupby(iterations["worker"]).quantile(0.95),
            "staleness": by_worker["staleness"].mean(),
        },
        index=workers,
    )


def _links(run: Run, end: float) -> pd.DataFrame:
    """What was carried by then is known at the ends of intervals, which are the times of evaluations."""
    times = run.evaluations()["virtual_time"]
    ends = np.unique([*times[times.between(end / 2, end)], end])
    links = run.links()
    links = links[links["virtual_time"] <= end * _ALIKE]
    # At how many of these ends it had been carried.
    at = len(ends) - np.searchsorted(ends * _ALIKE, links["virtual_time"])
    links = links.assign(throughput=links["bytes"] * at / ends.sum())
    return links.groupby(["sender", "receiver"])[["bytes", "messages", "throughput"]].sum()


def _side_by_side(simulated: pd.DataFrame, real: pd.DataFrame) -> pd.DataFrame:
    """Where only one has a row, of a link, the other counted nothing."""
    simulated, real = simulated.align(real, axis=0, fill_value=0)
    quantities = {}
    for name in simulated.columns:
        both = pd.DataFrame({"simulated": simulated[name], "real": real[name]}).astype(float)
        # Where there is nothing on either side, nothing differs.
        quantities[name] = both.assign(ratio=(both["real"] / both["simulated"]).where((both != 0).any(axis=1), 1.0))
    return pd.concat(quantities, axis=1)


def _evaluations(simulated: Run, real: Run, end: float) -> pd.DataFrame:
    """At the real run's evaluations; the simulated metric in between evaluations is interpolated."""
    means = [run.evaluations().groupby("virtual_time")[run.metric.key].mean() for run in (simulated, real)]
    modelled, measured = (mean[mean.index <= end * _ALIKE] for mean in means)
    if modelled.empty or measured.empty:
        return pd.DataFrame({"simulated": [], "real": [], "difference": []})
    expected = np.interp(measured.index, modelled.index, modelled)
    return pd.DataFrame({"simulated": expected, "real": measured, "difference": measured - expected})


def _late(real: Run) -> float:
    of_nodes = [node["late"] for node in real.manifest.get("nodes", ()) if node["late"]]
    if not of_nodes or not real.manifest.get("paced"):
        return math.nan
    return max(float(late["seconds_late"]) for late in of_nodes) / _end(real)


def _off(table: pd.DataFrame, quantity: str) -> float:
    """The greatest difference of a row, relative to what is simulated there or to a tenth of the mean row."""
    simulated, real = table[quantity]["simulated"], table[quantity]["real"]
    least: float = max(simulated.mean(), real.mean()) / 10
    relative: pd.Series = (real - simulated).abs() / simulated.clip(lower=least)
    return float(relative.max())


def _jsonable(values: Mapping[str, Any]) -> dict[str, Any]:
    """JSON knows neither NaN nor infinity."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in values.items()
    }


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    flat = table.copy()
    flat.columns = [name if isinstance(name, str) else "_".join(name) for name in flat.columns]
    records = flat.reset_index().to_dict("records")
    return [_jsonable({str(key): value for key, value in record.items()}) for record in records]
