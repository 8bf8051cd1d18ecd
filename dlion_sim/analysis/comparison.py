"""The table that compares groups of runs: their metric, time to a target, speed-up over Baseline, traffic."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from dlion_sim.analysis.cost import costs_until
from dlion_sim.analysis.curves import mean_metric
from dlion_sim.analysis.groups import Group, metric_of, note
from dlion_sim.analysis.statistics import Duration, Estimate, holm, mean_of, paired_p, ratio, restricted_mean
from dlion_sim.analysis.summarized import known, of_availability, of_packets, of_stream
from dlion_sim.analysis.traffic import sent_until
from dlion_sim.results import Run, final_metric


def comparison(groups: Sequence[Group], target: float) -> pd.DataFrame:
    """A row a group, over its completed runs; what is unknown is NaN. Raises InputError for runs of several metrics.

    Intervals (`..._low`, `..._high`) are 95 % t-intervals over seeds, and there is none for a single one. Columns:

    - `runs`, `completed`; `seeds`, how many of the completed are independent of each other: all below is of these
    - `last`: the task's metric (accuracy: a fraction) at the last evaluation, its mean over seeds
    - `final`, `final_low`, `final_high`: the mean of the last evaluations, see `final_metric`, of which there were
      `evaluations_least` to `evaluations_most`
    - `time`, `time_low`, `time_high` (s) until the metric is as good as `target`, and how many `reached` it. Where not
      all did, `time` is the restricted mean, `time_bound` is ">", and `waited` the shortest time (s) that a run went on
      without it; where all did, but nothing was evaluated in the half before, `time_bound` is "<="; `untrained` of them
      had it before training
    - `speedup`, `speedup_low`, `speedup_high`, `speedup_bound`: by which factor that is shorter than Baseline's time in
      the same environment, the geometric mean over `pairs` of the same seed; see `ratio`
    - `reference`: the number of the row that `p` compares with, Baseline or else the first of the same environment; -1
      where there are several Baselines
    - `p`, of a paired t-test of `final`, and `p_holm`, corrected for the number of rows
    - `lost`, the share of bytes that receivers did without, `completion` and `completion_p99` (s): means of what runs
      tell of messages that were sent in packets, as far as there were any
    - `online`, the accuracy of samples of a stream as they came, `forgetting`, and `adaptation` (s), its mean over the
      classes that came late, see `Streamed`: means of runs that tell of a stream
    - `up`, the share of time that workers were there, `goodput` (useful samples a second), `work_lost` (s, computed in
      iterations that were cut), `state_bytes`, what newcomers fetched, and `to_join` (s), from the start of a process
      until it took part: means of runs that tell who came and went, see `Availability`
    - `cost` of a run and `cost_to_target`, the means of runs with prices; the latter where all reached it
    - `wan_bytes` and `bytes_sent` of a run, over the WAN and over all links; `wan_bytes_to_target` and
      `bytes_sent_to_target`, sent until the target was reached, where all reached it: means
    - `note`, on runs in which some worker never took anything in
    """
    metric_of(groups)  # one, or they cannot be compared
    measured = [_Samples(group, target) for group in groups]
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
                **measured[number].row,
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
    """Virtual seconds until the workers' mean of the metric is as good as `target`; NaN where it never is."""
    told: Mapping[str, float | None] = (run.summary or {}).get(f"time_to_{run.metric.key}", {})
    if str(target) in told:
        time = told[str(target)]
        return float("nan") if time is None else time
    curve = mean_metric(run)
    reached = curve.index[[run.metric.reaches(value, target) for value in curve]]
    return float(reached[0]) if len(reached) else float("nan")


class _Samples:
    """What the independent runs of a group measured, by seed and repetition."""

    def __init__(self, group: Group, target: float) -> None:
        self._group = group
        runs = group.samples
        finals = {key: final(run) for key, run in runs.items()}
        self.finals = {key: known(final["mean"]) for key, final in finals.items()}
        """The mean metric at the end."""
        self.durations = {key: duration_until(run, target) for key, run in runs.items()}
        """Until the target."""
        self._last = [known(run.outcome[run.metric.key]["mean"]) for run in runs.values()]
        self._evaluations = [final["evaluations"] for final in finals.values()]

    @property
    def own_speedup(self) -> Estimate:
        """Over itself: 1, as long as it got there."""
        reached = bool(self.durations) and all(each.reached for each in self.durations.values())
        return Estimate(1.0) if reached else Estimate()

    @property
    def row(self) -> dict[str, Any]:
        """What needs no other group."""
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
            **of_packets(summaries),
            **of_stream(summaries),
            **of_availability(summaries),
            "wan_bytes": mean_of([run.wan_bytes for run in runs]).value,
            "bytes_sent": mean_of([summary["bytes_sent"] for summary in summaries]).value,
            **_to_target(runs, durations),
            "cost": mean_of([_total(summary) for summary in summaries]).value,
            "cost_to_target": mean_of([_cost_to_target(*each) for each in zip(runs, durations, strict=True)]).value,
            "note": note([self._group]),
        }


def _references(groups: Sequence[Group]) -> list[int]:
    """For each group the number of the one that it is compared with, or -1."""
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


def _total(summary: Mapping[str, Any]) -> float:
    return float(summary["cost"]["total"]) if "cost" in summary else math.nan


def _cost_to_target(run: Run, duration: Duration) -> float:
    """NaN where the target was not reached by training, or there are no prices."""
    if "tariff" not in run.manifest or not duration.reached or duration.is_untrained:
        return math.nan
    return costs_until(run, [duration.seconds])[0]


def _to_target(runs: Sequence[Run], durations: Sequence[Duration]) -> dict[str, float]:
    """What was sent until the target, a run's mean; NaN where not all reached it."""
    if not all(duration.reached and not duration.is_untrained for duration in durations):
        return {"wan_bytes_to_target": math.nan, "bytes_sent_to_target": math.nan}
    sent = [sent_until(run, duration.seconds) for run, duration in zip(runs, durations, strict=True)]
    return {f"{key}_to_target": mean_of([each[key] for each in sent]).value for key in ("wan_bytes", "bytes_sent")}


def duration_until(run: Run, target: float) -> Duration:
    """Until the target, or as long as the run lasted."""
    time = time_to_target(run, target)
    if math.isnan(time):
        return Duration(float(run.outcome["virtual_seconds"]), reached=False)
    return Duration(time, reached=True, gap=_gap(run, target, time))


def _gap(run: Run, target: float, time: float) -> float:
    """How long (s) before that time, at which it was at the target, there was no evaluation."""
    told: Mapping[str, float | None] = (run.summary or {}).get("not_before", {})
    if str(target) in told:
        before = told[str(target)] or 0.0
    else:  # of an older run, or a target of nobody's
        times = mean_metric(run).index
        before = max((each for each in times if each < time), default=0.0)
    return time - before


def final(run: Run) -> Mapping[str, Any]:
    """A run's metric at the end, see `final_metric`: as its summary tells; older ones don't."""
    summary = run.outcome
    if (key := f"final_{run.metric.key}") in summary:
        told: Mapping[str, Any] = summary[key]
        return told
    curve = mean_metric(run)
    return final_metric(list(zip(curve.index, curve, strict=True)), summary["virtual_seconds"])
