"""How far a simulated run and a real one of the same scenario are apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dlion_sim.errors import InputError
from dlion_sim.results import Run


@dataclass(frozen=True)
class Fidelity:
    """What both runs measured, and how that compares; seconds, bytes and fractions.

    Of each quantity the tables have the columns `simulated`, `real` and `ratio` (real / simulated) below its name.
    """

    workers: pd.DataFrame
    """By worker: iterations, iteration_median and iteration_p95 (s), staleness (iterations)."""
    links: pd.DataFrame
    """By sender and receiver: bytes, messages, throughput (bytes a second, over the time that both ran)."""
    accuracy: pd.DataFrame
    """By time (s): mean accuracy over the workers, simulated and real, and the difference."""

    @property
    def verdict(self) -> Mapping[str, float]:
        """The greatest differences: of median iteration times and bytes relatively, of the accuracies in points.

        The accuracy is compared at the end, and at each evaluation before.
        """
        points = 100 * self.accuracy["difference"].abs()
        return {
            "iteration_median": _off(self.workers["iteration_median"]["ratio"]),
            "bytes": _off(self.links["bytes"]["ratio"]),
            "accuracy_at_end": float(points.iloc[-1]) if len(points) else float("nan"),
            "accuracy_on_the_way": float(points.max()) if len(points) else float("nan"),
        }

    @property
    def document(self) -> dict[str, Any]:
        """All of it as JSON can say it."""
        return {
            "verdict": dict(self.verdict),
            "workers": _records(self.workers),
            "links": _records(self.links),
            "accuracy": _records(self.accuracy),
        }


def compare(simulated: Run, real: Run) -> Fidelity:
    """Compare two runs of one scenario, over the time that both of them ran.

    Raises InputError where they are not of the same workers, were not evaluated on the same set, or one of them cannot
    be read or ended before it began.
    """
    if simulated.manifest["workers"] != real.manifest["workers"]:
        raise InputError("has other workers", file=real.folder, allowed=f"those of {simulated.folder}")
    if simulated.evaluated_on != real.evaluated_on:
        problem = f"was evaluated on the {real.evaluated_on} set"
        raise InputError(problem, file=real.folder, allowed=f"the {simulated.evaluated_on} set, as {simulated.folder}")
    end = min(_end(simulated), _end(real))
    return Fidelity(
        workers=_side_by_side(*(_workers(run, end) for run in (simulated, real))),
        links=_side_by_side(*(_links(run, end) for run in (simulated, real))),
        accuracy=_accuracy(simulated, real, end),
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
    return pd.DataFrame(
        {
            "iterations": by_worker.size(),
            "iteration_median": lasted.groupby(iterations["worker"]).median(),
            "iteration_p95": lasted.groupby(iterations["worker"]).quantile(0.95),
            "staleness": by_worker["staleness"].mean(),
        }
    )


def _links(run: Run, end: float) -> pd.DataFrame:
    """Up to the last end of an interval that lies within the time."""
    links = run.links()
    within = links[links["virtual_time"] <= end * (1 + 1e-9)]
    totals = within.groupby(["sender", "receiver"])[["bytes", "messages"]].sum()
    last = within["virtual_time"].max() if len(within) else float("nan")
    return totals.assign(throughput=totals["bytes"] / last)


def _side_by_side(simulated: pd.DataFrame, real: pd.DataFrame) -> pd.DataFrame:
    quantities = {}
    for name in simulated.columns:
        both = pd.DataFrame({"simulated": simulated[name], "real": real[name]}).astype(float)
        # Where there is nothing on either side, nothing differs.
        quantities[name] = both.assign(ratio=(both["real"] / both["simulated"]).where(both.any(axis=1), 1.0))
    return pd.concat(quantities, axis=1)


def _accuracy(simulated: Run, real: Run, end: float) -> pd.DataFrame:
    """At the real run's evaluations; the simulated accuracy in between evaluations is interpolated."""
    means = [run.evaluations().groupby("virtual_time")["accuracy"].mean() for run in (simulated, real)]
    modelled, measured = (mean[mean.index <= end * (1 + 1e-9)] for mean in means)
    if modelled.empty or measured.empty:
        return pd.DataFrame({"simulated": [], "real": [], "difference": []})
    expected = np.interp(measured.index, modelled.index, modelled)
    return pd.DataFrame({"simulated": expected, "real": measured, "difference": measured - expected})


def _off(ratios: pd.Series) -> float:
    return float((ratios - 1).abs().max())


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    flat = table.copy()
    flat.columns = [name if isinstance(name, str) else "_".join(name) for name in flat.columns]
    # JSON knows no NaN.
    return [
        {str(key): None if value != value else value for key, value in record.items()}
        for record in flat.reset_index().to_dict("records")
    ]
