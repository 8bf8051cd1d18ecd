"""Differences between a simulated run and a real one of the same scenario."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dlion_sim.errors import InputError
from dlion_sim.metric import Metric
from dlion_sim.results import Run

_ROUNDING = 1 + 1e-9
"""Tolerance for rounded clocks."""


@dataclass(frozen=True)
class Fidelity:
    """Measurements of both runs and their ratios; seconds, bytes and fractions.

    Tables have the columns `simulated`, `real` and `ratio` (real / simulated) below each quantity's name.

    Iterations and messages are whole numbers: at one instant a run may be one ahead of another that is milliseconds
    slower, which is 5 % of 20. So paces and throughputs are rates since the start, averaged over the second half of the
    time that both ran.
    """

    workers: pd.DataFrame
    """By worker: iterations, pace (per second), iteration_median and iteration_p95 (s), staleness (iterations)."""
    links: pd.DataFrame
    """By sender and receiver: bytes, messages, throughput (bytes per second); empty without an exchange."""
    metric: Metric
    """The metric of evaluations."""
    evaluations: pd.DataFrame
    """By time (s): the metric's mean over the workers, simulated and real, and the difference."""
    delays: pd.DataFrame
    """Delays of failure detection and joining, see `compare_delays`; empty without outages."""
    late: float
    """The share of time by which the latest node's computations exceeded the model, which is no error of the
    simulator. NaN without pacing."""

    @property
    def verdict(self) -> Mapping[str, float]:
        """Relative differences of the worker or link that differs most; of accuracies, differences in points.

        Those of another metric are relative to the simulated one, and their keys begin with `metric`.

        `iterations` and `bytes` compare paces and throughputs. Each is relative to the simulated one or, if larger, a
        tenth of the mean of all: a link with control messages only may carry twice as many without any effect. The
        metric is compared at the end, on the way (mean difference of all evaluations) and at worst (any evaluation).
        Unknown differences are NaN, such as of bytes without an exchange.

        `to_notice` and `to_rejoin`, of runs with outages, are the greatest differences of delays, relative to the
        simulated delay or, if longer, to 2 s: a tenth is 10 %, or 0.2 s.
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
            "to_notice": max_difference(self.delays, "lost"),
            "to_rejoin": max_difference(self.delays, "found", "joined"),
        }

    @property
    def document(self) -> dict[str, Any]:
        """All of it for JSON."""
        return {
            "verdict": self.verdict,
            "late": self.late,
            "workers": _records(self.workers),
            "links": _records(self.links),
            self.metric.key: _records(self.evaluations),
            **({"delays": _records(self.delays)} if len(self.delays) else {}),
        }


def compare(simulated: Run, real: Run) -> Fidelity:
    """Compare two runs of one scenario, over the time that both of them ran.

    Raises InputError if their workers, evaluation sets or metrics differ, or one of them cannot be read or is empty.
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
    # The part of the second half after an iteration's end.
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
    """Bytes so far are known at the ends of intervals, which are the times of evaluations."""
    times = run.evaluations()["virtual_time"]
    ends = np.unique([*times[times.between(end / 2, end)], end])
    links = run.links()
    links = links[links["virtual_time"] <= end * _ROUNDING]
    # The number of interval ends at or after the row's.
    at = len(ends) - np.searchsorted(ends * _ROUNDING, links["virtual_time"])
    links = links.assign(throughput=links["bytes"] * at / ends.sum())
    return links.groupby(["sender", "receiver"])[["bytes", "messages", "throughput"]].sum()


def _side_by_side(simulated: pd.DataFrame, real: pd.DataFrame) -> pd.DataFrame:
    """Both tables; a link that only one of them has counts as 0 in the other."""
    simulated, real = simulated.align(real, axis=0, fill_value=0)
    quantities = {}
    for name in simulated.columns:
        both = pd.DataFrame({"simulated": simulated[name], "real": real[name]}).astype(float)
        # 0 equals 0.
        quantities[name] = both.assign(ratio=(both["real"] / both["simulated"]).where((both != 0).any(axis=1), 1.0))
    return pd.concat(quantities, axis=1)


def _evaluations(simulated: Run, real: Run, end: float) -> pd.DataFrame:
    """At the real run's evaluations, to which the simulated metric is interpolated."""
    means = [run.evaluations().groupby("virtual_time")[run.metric.key].mean() for run in (simulated, real)]
    modelled, measured = (mean[mean.index <= end * _ROUNDING] for mean in means)
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
    """The greatest difference of a row, relative to its simulated value or a tenth of the mean row."""
    simulated, real = table[quantity]["simulated"], table[quantity]["real"]
    least: float = max(simulated.mean(), real.mean()) / 10
    relative: pd.Series = (real - simulated).abs() / simulated.clip(lower=least)
    return float(relative.max())


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    flat = table.copy()
    flat.columns = [name if isinstance(name, str) else "_".join(name) for name in flat.columns]
    return [{str(key): value for key, value in record.items()} for record in flat.reset_index().to_dict("records")]


_KEY = ["what", "participant", "peer", "time"]
_LEAST_SECONDS = 2.0
"""Differences of shorter delays are relative to this: a tenth of it is the variation of a machine's own times."""


def compare_delays(simulated: Run, real: Run, end: float) -> pd.DataFrame:
    """Delays in seconds, `simulated` and `real`, by what (lost, found, joined), participant, reporting peer (-1:
    itself)
    and number of the repetition.

    "lost" counts from the participant's end, "found" from its loss by the same peer, and "joined" from the start of the
    process. An event of one run only has NaN for the other.
    """
    model, measured = (_delays(run, end) for run in (simulated, real))
    both = model.add_suffix("_simulated").join(measured.add_suffix("_real"), how="outer")
    # A node does not know when a link fell silent, so the delay is the simulated one plus how much later it was.
    later = both["virtual_time_real"] - both["virtual_time_simulated"]
    measured_seconds = both["seconds_real"].fillna(both["seconds_simulated"] + later)
    return pd.DataFrame({"simulated": both["seconds_simulated"], "real": measured_seconds})


def max_difference(delays: pd.DataFrame, *what: str) -> float:
    """The greatest difference of delays of some kinds, relative to the simulated delay or, if longer, two seconds.

    Infinite if an event happened in one run only; NaN without events.
    """
    of_kind = delays[delays.index.get_level_values("what").isin(what)]
    apart = (of_kind["real"] - of_kind["simulated"]).abs() / of_kind["simulated"].clip(lower=_LEAST_SECONDS)
    return float(apart.fillna(np.inf).max())


def _delays(run: Run, end: float) -> pd.DataFrame:
    """`virtual_time` and `seconds` of each (what, participant, peer, number)."""
    rows = run.membership()
    rows = rows[rows["virtual_time"] <= end].sort_values("virtual_time", kind="stable")
    rows = rows.assign(what=rows["what"].astype(str).replace("begins_anew", "joined"))
    rows = rows[rows["what"].isin(["lost", "found", "joined"])]
    # The sponsors may differ.
    rows = rows.assign(peer=rows["peer"].where(rows["what"] != "joined").fillna(-1).astype(int))
    rows = rows.assign(seconds=rows["seconds"].where(rows["what"] != "found", _since_lost(rows)))
    rows = rows[(rows["what"] != "found") | rows["seconds"].notna()]
    rows = rows.assign(time=rows.groupby(["what", "participant", "peer"]).cumcount())
    return rows.set_index(_KEY)[["virtual_time", "seconds"]].astype(float)


def _since_lost(rows: pd.DataFrame) -> pd.Series:
    """The time from a peer's loss of a participant until it found it again; NaN without a loss."""
    pair = rows.groupby(["participant", "peer"])
    since = rows["virtual_time"] - pair["virtual_time"].shift()
    return since.where(pair["what"].shift() == "lost")
