"""The comparison table of groups of runs: metric, time to a target, speed-up over Baseline, traffic, cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from dlion_sim.analysis.cost import costs_until
from dlion_sim.analysis.curves import mean_metric
from dlion_sim.analysis.groups import Group, metric_of, note
from dlion_sim.analysis.statistics import Duration, Estimate, holm, mean_of, paired_p, ratio, restricted_mean
from dlion_sim.analysis.traffic import sent_until
from dlion_sim.results import Run, final_metric


def comparison(groups: Sequence[Group], target: float) -> pd.DataFrame:
    """A row for each group, over its completed runs; unknown values are NaN.

    Raises InputError for runs of several metrics. Intervals (`..._low`, `..._high`) are 95 % t-intervals over seeds;
    a single seed has none. Columns:

    - `runs`, `completed`; `seeds`, the number of completed runs that are independent: the rest is over these
    - `last`: the task's metric (accuracy: a fraction) at the last evaluation, mean over seeds
    - `final`, `final_low`, `final_high`: the mean of the last evaluations, see `final_metric`, of which there were
      `evaluations_least` to `evaluations_most`
    - `time`, `time_low`, `time_high` (s) until the metric reaches `target`, and how many runs `reached` it. If not all
      did, `time` is the restricted mean, `time_bound` is ">", and `waited` the shortest duration (s) of a run that did
      not; if all did, but without an evaluation in the half before, `time_bound` is "<="; `untrained` of them reached
      it before training
    - `speedup`, `speedup_low`, `speedup_high`, `speedup_bound`: Baseline's time in the same environment over this one,
      the geometric mean over `pairs` of the same seed; see `ratio`
    - `reference`: the number of the row that `p` compares with, Baseline or else the first of the same environment; -1
      if there are several Baselines
    - `p`, of a paired t-test of `final`, and `p_holm`, corrected for the number of rows
    - `lost`, the share of bytes that receivers did without, `completion` and `completion_p99` (s) of messages sent in
      packets: means of runs with packets
    - `online`, the online accuracy, `forgetting`, and `adaptation` (s), its mean over the classes that arrive late, see
      `Streamed`: means of runs with a stream
    - `up`, the share of time that workers were available, `goodput` (useful samples per second), `work_lost` (s of
      computation in interrupted iterations), `state_bytes` of state transfers, and `to_join` (s), from the start of a
      process until it joined, see `Availability`: if some run had outages
    - `cost` and `cost_to_target`, means of runs with prices; the latter if all reached the target
    - `wan_bytes` and `bytes_sent`, over the WAN and over all links; `wan_bytes_to_target` and `bytes_sent_to_target`,
      sent until the target, if all reached it: means
    - `note`, on runs in which some worker never applied a contribution
    """
    metric_of(groups)  # raises for several
    measured = [_Samples(group, target) for group in groups]
    with_outages = any(each.has_outages for each in measured)
    rows = []
    for number, reference in enumerate(_references(groups)):
        speedup, p = Estimate(), math.nan
        if reference == number and groups[number].is_reference:
            speedup = measured[number].own_speedup
        elif reference not in (number, -1):
            p = paired_p(measured[number].finals, measured[reference].finals)
            if groups[reference].is_reference:
                speedup = ratio(measured[reference].durations, measured[number].durations)
        rows.append(
            {
                **measured[number].row(with_outages),
                **_columns("speedup", speedup),
                "speedup_bound": speedup.bound,
                "pairs": speedup.pairs,
                "reference": reference,
                "p": p,
            }
        )
    table = pd.DataFrame(rows)
    return table.assign(p_holm=holm(table["p"].tolist()))


def time_to_target(run: Run, target: float) -> float:
    """Virtual seconds until the workers' mean of the metric reaches `target`; NaN if it never does."""
    times: Mapping[str, float | None] = (run.summary or {}).get(f"time_to_{run.metric.key}", {})
    if str(target) in times:
        time = times[str(target)]
        return float("nan") if time is None else time
    curve = mean_metric(run)
    reached = curve.index[[run.metric.reaches(value, target) for value in curve]]
    return float(reached[0]) if len(reached) else float("nan")


class _Samples:
    """Measurements of the independent runs of a group, by seed and repetition."""

    def __init__(self, group: Group, target: float) -> None:
        self._group = group
        runs = group.samples
        finals = {key: final(run) for key, run in runs.items()}
        self.finals = {key: _or_nan(final["mean"]) for key, final in finals.items()}
        """The mean metric at the end."""
        self.durations = {key: duration_until(run, target) for key, run in runs.items()}
        """Until the target."""
        self._last = [_or_nan(run.outcome[run.metric.key]["mean"]) for run in runs.values()]
        self._evaluations = [final["evaluations"] for final in finals.values()]

    @property
    def own_speedup(self) -> Estimate:
        """Speed-up over itself: 1 if all runs reached the target."""
        reached = bool(self.durations) and all(each.reached for each in self.durations.values())
        return Estimate(1.0) if reached else Estimate()

    @property
    def has_outages(self) -> bool:
        """Whether some run had any."""
        return any("availability" in run.outcome for run in self._group.samples.values())

    def row(self, with_outages: bool) -> dict[str, Any]:
        """The columns that need no other group, those of availability `with_outages`."""
        runs = list(self._group.samples.values())
        summaries = [run.outcome for run in runs]
        durations = list(self.durations.values())
        time = restricted_mean(durations)
        return {
            "runs": len(self._group.runs),
            "completed": len(self._group.completed),
            "seeds": len(summaries),
            "last": mean_of(self._last).value,
            **_columns("final", mean_of(list(self.finals.values()))),
            "evaluations_least": min(self._evaluations, default=0),
            "evaluations_most": max(self._evaluations, default=0),
            **_columns("time", time),
            "time_bound": time.bound,
            "untrained": sum(each.is_untrained for each in durations),
            "reached": sum(each.reached for each in durations),
            "waited": min((each.seconds for each in durations if not each.reached), default=math.nan),
            **_from_summaries(summaries, with_outages),
            "wan_bytes": mean_of([run.wan_bytes for run in runs]).value,
            "bytes_sent": mean_of([summary["bytes_sent"] for summary in summaries]).value,
            **_to_target(runs, durations),
            "cost": mean_of([_total(summary) for summary in summaries]).value,
            "cost_to_target": mean_of([_cost_to_target(*each) for each in zip(runs, durations, strict=True)]).value,
            "note": note([self._group]),
        }


def _references(groups: Sequence[Group]) -> list[int]:
    """For each group the number of its reference group, or -1."""
    environments: list[object] = [(*group.environment, group.runs[0].cluster) for group in groups]
    of_environment: dict[object, list[int]] = {}
    for number, environment in enumerate(environments):
        of_environment.setdefault(environment, []).append(number)
    found: dict[object, int] = {}
    for environment, numbers in of_environment.items():
        candidates = [number for number in numbers if groups[number].is_reference] or numbers[:1]
        found[environment] = candidates[0] if len(candidates) == 1 else -1
    return [found[environment] for environment in environments]


def _columns(name: str, estimate: Estimate) -> dict[str, float]:
    return {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}


def _from_summaries(summaries: Sequence[Mapping[str, Any]], with_outages: bool) -> dict[str, float]:
    """Means of packets, streams and availability over the summaries that have them; NaN without any.

    `with_outages`, beside runs that had some, a run without counts as fully available.
    """
    packets = [own for summary in summaries if (own := summary.get("transport"))]
    streams = [own for summary in summaries if (own := summary.get("stream"))]
    availability = [summary.get("availability", _without_outages(summary)) for summary in summaries if with_outages]
    seconds = [summary["virtual_seconds"] for summary in summaries]
    joins = [_or_nan(each["to_join"]["mean"]) for each in availability if "to_join" in each]
    values = {
        "lost": [each["lost"] for each in packets],
        "completion": [_or_nan(each["completion"]["mean"]) for each in packets],
        "completion_p99": [_or_nan(each["completion"]["p99"]) for each in packets],
        "online": [_or_nan(each["online_accuracy"]) for each in streams],
        "forgetting": [_or_nan(each["forgetting"]) for each in streams],
        "adaptation": [mean_of([*map(_or_nan, each["adaptation"].values())]).value for each in streams],
        "up": [mean_of(each.get("up", [])).value for each in availability],
        "goodput": [
            each.get("useful", math.nan) / over for each, over in zip(availability, seconds, strict=False) if over
        ],
        "work_lost": [each.get("lost_seconds", math.nan) for each in availability],
        "state_bytes": [each.get("state_bytes", math.nan) for each in availability],
        "to_join": [each for each in joins if not math.isnan(each)],
    }
    return {name: mean_of(of_runs).value for name, of_runs in values.items()}


def _without_outages(summary: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"up": [1.0], "useful": summary["samples"], "lost_seconds": 0.0, "state_bytes": 0}


def _or_nan(value: float | None) -> float:
    """JSON has no NaN."""
    return math.nan if value is None else value


def _total(summary: Mapping[str, Any]) -> float:
    return float(summary["cost"]["total"]) if "cost" in summary else math.nan


def _cost_to_target(run: Run, duration: Duration) -> float:
    """NaN if the target was not reached by training, or without prices."""
    if "tariff" not in run.manifest or not duration.reached or duration.is_untrained:
        return math.nan
    return costs_until(run, [duration.seconds])[0]


def _to_target(runs: Sequence[Run], durations: Sequence[Duration]) -> dict[str, float]:
    """Mean bytes sent until the target; NaN if not all runs reached it."""
    if not all(duration.reached and not duration.is_untrained for duration in durations):
        return {"wan_bytes_to_target": math.nan, "bytes_sent_to_target": math.nan}
    sent = [sent_until(run, duration.seconds) for run, duration in zip(runs, durations, strict=True)]
    return {f"{key}_to_target": mean_of([each[key] for each in sent]).value for key in ("wan_bytes", "bytes_sent")}


def duration_until(run: Run, target: float) -> Duration:
    """The time to the target, or the run's duration if it was not reached."""
    time = time_to_target(run, target)
    if math.isnan(time):
        return Duration(float(run.outcome["virtual_seconds"]), reached=False)
    return Duration(time, reached=True, gap=_gap(run, target, time))


def _gap(run: Run, target: float, time: float) -> float:
    """The time (s) without an evaluation before the target was reached."""
    bounds: Mapping[str, float | None] = (run.summary or {}).get("not_before", {})
    if str(target) in bounds:
        before = bounds[str(target)] or 0.0
    else:  # of an older run, or a target that was not the scenario's
        times = mean_metric(run).index
        before = max((each for each in times if each < time), default=0.0)
    return time - before


def final(run: Run) -> Mapping[str, Any]:
    """A run's metric at the end, see `final_metric`: from its summary, or for older runs from its evaluations."""
    summary = run.outcome
    if (key := f"final_{run.metric.key}") in summary:
        value: Mapping[str, Any] = summary[key]
        return value
    curve = mean_metric(run)
    return final_metric(list(zip(curve.index, curve, strict=True)), summary["virtual_seconds"])
