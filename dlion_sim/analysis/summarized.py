"""What the summaries of a group's runs tell besides their metric, on average; NaN where none tells it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dlion_sim.analysis.statistics import mean_of


def of_packets(summaries: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """What became of messages that were sent in packets."""
    told = [transport for summary in summaries if (transport := summary.get("transport"))]
    return _means(
        lost=[each["lost"] for each in told],
        completion=[known(each["completion"]["mean"]) for each in told],
        completion_p99=[known(each["completion"]["p99"]) for each in told],
    )


def of_stream(summaries: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """How workers did on samples that came; adaptation is unknown where one never adapted to a class."""
    told = [stream for summary in summaries if (stream := summary.get("stream"))]
    return _means(
        online=[known(each["online_accuracy"]) for each in told],
        forgetting=[known(each["forgetting"]) for each in told],
        adaptation=[mean_of(list(map(known, each["adaptation"].values()))).value for each in told],
    )


def of_availability(summaries: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Who was there, and what it cost that others were not.

    A run in which nobody happened to come or go counts as one that lost nothing, beside others of its group.
    """
    away = any("availability" in summary for summary in summaries)
    told = [summary.get("availability", _nobody_went(summary)) for summary in summaries] if away else []
    seconds = [summary["virtual_seconds"] for summary in summaries]
    joins = [known(each["to_join"]["mean"]) for each in told if "to_join" in each]
    return _means(
        up=[mean_of(each.get("up", [])).value for each in told],
        goodput=[each.get("useful", math.nan) / over for each, over in zip(told, seconds, strict=False) if over],
        work_lost=[each.get("lost_seconds", math.nan) for each in told],
        state_bytes=[each.get("state_bytes", math.nan) for each in told],
        to_join=[each for each in joins if not math.isnan(each)],
    )


def _nobody_went(summary: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"up": [1.0], "useful": summary["samples"], "lost_seconds": 0.0, "state_bytes": 0}


def _means(**values: Sequence[float]) -> dict[str, float]:
    return {name: mean_of(of_runs).value for name, of_runs in values.items()}


def known(told: float | None) -> float:
    """JSON has no word for NaN."""
    return math.nan if told is None else told
