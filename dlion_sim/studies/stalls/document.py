"""The JSON document on a scenario's stalls."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from dlion_sim.analysis.stalls.attribution import Stalls, summary_sentence
from dlion_sim.analysis.stalls.differencing import WITH_CHURN, checks, differences, seconds_to_loss
from dlion_sim.results import clouds_of, participants

_MAX_WAITS = 5
"""The number of longest waits of each worker in the document."""
_MAX_GAP = 0.03
"""The share of an iteration's time up to which both methods agree."""


def document(
    steps: Mapping[str, Stalls],
    counterfactuals: Mapping[str, Stalls],
    faster: Mapping[str, Stalls],
    *,
    is_in_step: bool,
    is_recorded: bool,
    warm_up: int,
) -> dict[str, Any]:
    """The document: seconds of iterations by kind, and shares of a worker's time, which sum to 1.

    `steps` are those of `STEPS`, and `WITH_CHURN` if there is any; the last one is the unchanged scenario.
    `counterfactuals` are without one cause of stalls, `faster` with one resource twice as fast. Differencing is checked
    by a timeline for a system that `is_in_step`, if messages are recorded (`is_recorded`).
    """
    base = [*steps.values()][-1]

    def taken(each: Stalls) -> float:
        """With churn, a mean over workers would be dominated by those with few iterations."""
        return each.mean_iteration_seconds if WITH_CHURN in steps else each.iteration_seconds

    check = checks(steps, warm_up).to_dict("index") if is_in_step and is_recorded else None
    compared = {name: each for name, each in {**steps, **counterfactuals}.items() if _is_like(each, base)}
    loss, reached = seconds_to_loss({name: each.run for name, each in compared.items()})
    return {
        "scenario": base.run.manifest["scenario"],
        "system": base.run.system,
        "seed": base.run.manifest["seed"],
        "in_step": is_in_step,
        "summary": summary_sentence(base),
        "workers": _workers(base),
        "iteration_seconds": {name: _spread(each, taken(each)) for name, each in steps.items()},
        "differencing": differences({name: taken(each) for name, each in steps.items()}).to_dict("index"),
        "check": check,
        "agreement": _agreement(check, is_in_step),
        "counterfactuals": {
            name: {
                "iteration_seconds": _spread(each, taken(each)),
                "saved_share": 1 - taken(each) / taken(base),
            }
            for name, each in counterfactuals.items()
        },
        "faster": {
            name: {
                "iteration_seconds": _spread(each, taken(each)),
                "more_iterations": taken(base) / taken(each) - 1,
                "less_stalled": 1 - _stalled(each) / (_stalled(base) or math.nan),
            }
            for name, each in faster.items()
        },
        "loss": {"training_loss": loss, "seconds": reached},
    }


def _stalled(stalls: Stalls) -> float:
    """The seconds of an iteration in which workers do not compute, over all workers."""
    return float(stalls.seconds.drop(columns="compute").to_numpy().sum()) / (
        sum(stalls.iterations.values()) or math.nan
    )


def _agreement(check: dict[Hashable, Any] | None, is_in_step: bool) -> str:
    """Whether differencing and one run's timeline agree, as text."""
    if check is None:
        why = "messages are not recorded" if is_in_step else "what a wait is for depends on how far ahead workers are"
        return f"differences of runs are not checked by one timeline: {why}"
    gaps = {what: found["gap"] for what, found in check.items()}
    far = ", ".join(f"{what} by {gap:.0%}" for what, gap in gaps.items() if gap > _MAX_GAP)
    if far:
        return f"runs and one timeline are apart, of an iteration's time: {far}; messages meet at other times"
    return f"runs and one timeline agree within {max(gaps.values()):.1%} of an iteration's time"


def _is_like(one: Stalls, other: Stalls) -> bool:
    """Whether both have the same number of workers."""
    return len(one.seconds) == len(other.seconds)


def _workers(stalls: Stalls) -> list[dict[str, Any]]:
    names, clouds = participants(stalls.run.manifest), clouds_of(stalls.run.manifest)
    shares = stalls.shares
    return [
        {
            "worker": names[worker],
            "cloud": clouds[worker],
            "iterations": stalls.iterations[worker],
            "seconds": stalls.seconds.loc[worker].to_dict(),
            "shares": shares.loc[worker].to_dict(),
            "waits": [
                {"kind": kind, "from": names[sender], "to": names[receiver], "seconds": seconds}
                for _, kind, sender, receiver, seconds in stalls.waits[stalls.waits["worker"] == worker]
                .head(_MAX_WAITS)
                .itertuples(index=False)
            ],
        }
        for worker in stalls.seconds.index
    ]


def _spread(stalls: Stalls, mean: float) -> dict[str, float]:
    """The duration of an iteration (s): the `mean`, and minimum, maximum and coefficient of variation over workers."""
    took = np.array([stalls.totals[worker] / count for worker, count in stalls.iterations.items() if count])
    if not len(took):
        return dict.fromkeys(("mean", "least", "most", "variation"), float("nan"))
    variation = float(took.std() / took.mean())
    return {"mean": mean, "least": float(took.min()), "most": float(took.max()), "variation": variation}
