"""Results of groups of runs: quantities with their intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dlion_sim.analysis import comparison, metric_name, metric_of, time_to_target
from dlion_sim.analysis.cost import costs_until
from dlion_sim.analysis.curves import mean_metric
from dlion_sim.analysis.groups import Group
from dlion_sim.analysis.statistics import Bound, Duration, Estimate, mean_of, restricted_mean
from dlion_sim.analysis.traffic import sent_until
from dlion_sim.figures.style import time_unit
from dlion_sim.metric import ACCURACY
from dlion_sim.results import LAN, WAN, Run, traffic_of
from dlion_sim.results.numbers import byte_unit, number, of_metric

SCORE, TIME, COST, COST_TO_TARGET = "final", "time", "cost", "cost_to_target"
_BYTES = (WAN.total, LAN.total)
_BYTES_TO_TARGET = (WAN.to_target, LAN.to_target)

Outcome = Mapping[str, Estimate]
"""The results of a group, by the key of the quantity."""


@dataclass(frozen=True)
class Quantity:
    """A quantity that groups are compared by."""

    key: str
    title: str
    unit: str
    """Empty without one."""
    size: float
    """The size of the unit in units of the estimates."""
    more_is_better: bool = False
    form: str = ""
    """The number format; by default at least three digits."""

    @property
    def heading(self) -> str:
        """The title with the unit."""
        return f"{self.title} ({self.unit})" if self.unit else self.title

    def display(self, estimate: Estimate) -> dict[str, Any]:
        """An estimate for the page: `value`, `low` and `high` in the unit, NaN if unknown, `bound` and `text`."""
        value, low, high = (each / self.size for each in (estimate.value, estimate.low, estimate.high))
        text = ""
        if not math.isnan(value):
            half = "" if math.isnan(high) else f" ± {self._written(high - value)}"
            text = f"{estimate.bound} {self._written(value)}{half}".lstrip()
            if self.key == TIME and value == 0:
                text = "before training"
        return {"value": value, "low": low, "high": high, "bound": estimate.bound, "text": text}

    def _written(self, value: float) -> str:
        return format(value, self.form) if self.form else number(value)


def outcomes(groups: Sequence[Group], target: float | None) -> list[Outcome]:
    """The results of each group over its completed runs, or over all its runs so far if none is completed.

    `target` is that of `time` and `cost_to_target`, which are unknown without one.
    """
    rows = comparison(groups, math.nan if target is None else target).to_dict("records")
    return [
        _of_row(row) if group.completed else _so_far(group, target) for group, row in zip(groups, rows, strict=True)
    ]


def quantities(groups: Sequence[Group], found: Sequence[Outcome], target: float | None) -> list[Quantity]:
    """The quantities with known values, in units that fit the largest of what was `found`."""
    metric = metric_of(groups)
    until = "" if target is None else f" to {of_metric(target, metric)}"
    name = metric_name(groups)
    seconds, second = time_unit(_most(found, TIME))
    traffic = traffic_of(run for group in groups for run in group.runs)
    size, byte = byte_unit(_most(found, traffic.total))
    in_all = byte_unit(_most(found, LAN.total))
    unit = metric.axis.strip(" ()")
    every = (
        Quantity(
            SCORE,
            name[:1].upper() + name[1:],
            unit,
            1 / metric.scale,
            metric.higher_is_better,
            ".1f" if metric == ACCURACY else ".4g",
        ),
        Quantity(TIME, f"Time{until}", second, seconds, form=",.1f"),
        Quantity(traffic.total, f"{traffic.name} bytes", byte, size),
        Quantity(traffic.to_target, f"{traffic.name} bytes{until}", byte, size),
        *([Quantity(LAN.total, "Bytes in all", in_all[1], in_all[0])] if traffic == WAN else []),
        Quantity(COST, "Cost", "", 1.0),
        Quantity(COST_TO_TARGET, f"Cost{until}", "", 1.0),
    )
    return [each for each in every if any(not math.isnan(one[each.key].value) for one in found)]


def _of_row(row: Mapping[Any, Any]) -> Outcome:
    until: Bound = "<=" if row["time_bound"] == "<=" else ""
    return {
        SCORE: _estimate(row, SCORE),
        TIME: _estimate(row, TIME, row["time_bound"]),
        **{key: Estimate(row[key]) for key in (*_BYTES, COST)},
        **{key: Estimate(row[key], bound=until) for key in (*_BYTES_TO_TARGET, COST_TO_TARGET)},
    }


def _estimate(row: Mapping[Any, Any], name: str, bound: Bound = "") -> Estimate:
    return Estimate(row[name], row[f"{name}_low"], row[f"{name}_high"], bound)


def _so_far(group: Group, target: float | None) -> Outcome:
    """Results of evaluated runs so far; bytes and costs are lower bounds."""
    begun = [(run, curve) for run in group.runs if len(curve := mean_metric(run))]
    sent = [sent_until(run, math.inf) for run, _ in begun]
    costs = [costs_until(run, [reached(run)])[0] for run, _ in begun if "tariff" in run.manifest]
    return {
        SCORE: mean_of([float(curve.iloc[-1]) for _, curve in begun]),
        TIME: Estimate() if target is None else restricted_mean([_until(run, target) for run, _ in begun]),
        **{key: Estimate(mean_of([each[key] for each in sent]).value, bound=">") for key in _BYTES},
        **dict.fromkeys(_BYTES_TO_TARGET, Estimate()),
        COST: Estimate(mean_of(costs).value, bound=">"),
        COST_TO_TARGET: Estimate(),
    }


def _until(run: Run, target: float) -> Duration:
    time = time_to_target(run, target)
    return Duration(reached(run), reached=False) if math.isnan(time) else Duration(time, reached=True)


def reached(run: Run) -> float:
    """The run's duration so far (s)."""
    if run.summary is not None:
        return float(run.summary["virtual_seconds"])
    times = run.metrics()["virtual_time"]
    return float(times.max()) if len(times) else 0.0


def _most(found: Sequence[Outcome], key: str) -> float:
    return max((each[key].value for each in found if not math.isnan(each[key].value)), default=1.0)
