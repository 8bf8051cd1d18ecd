import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlion_sim.metric import ACCURACY, PERPLEXITY
from dlion_sim.results import Ending, summarize, time_to_target
from dlion_sim.results.atomic import json_bytes

FACTS: dict[str, Any] = {
    "scenario": "quickstart",
    "system": "dlion",
    "system_label": "dlion, weights share",
    "seed": 7,
    "ending": Ending("completed", "time", 300.0),
    "wall_seconds": 4.0,
    "evaluation_seconds": 1.0,
    "samples": 1000,
    "wan_bytes": 2345,
    "bytes_sent": 12345,
    "iterations": {0: 10, 1: 20},
    "exchanges": {0: 9, 1: 0},
    "losses": {0: (2.0, 0.5), 1: (2.0, 0.4)},
    "evaluations": [(100.0, {0: 0.2, 1: 0.4}), (200.0, {0: 0.5, 1: 0.7}), (300.0, {0: 0.4, 1: 0.6})],
}

fractions = st.floats(0, 1)
evaluations = st.lists(st.lists(fractions, min_size=3, max_size=3), max_size=20).map(
    lambda rows: [(float(second), dict(enumerate(row))) for second, row in enumerate(rows)]
)


def test_a_summary() -> None:
    assert summarize(**FACTS, evaluated_on="validation", target=0.55) == {
        "scenario": "quickstart",
        "system": "dlion",
        "system_label": "dlion, weights share",
        "seed": 7,
        "status": "completed",
        "stopped_by": "time",
        "virtual_seconds": 300.0,
        "wall_seconds": 4.0,
        "evaluation_share": 0.25,
        "samples": 1000,
        "samples_per_wall_second": 250.0,
        "wan_bytes": 2345,
        "bytes_sent": 12345,
        "iterations": {"mean": 15.0, "per_worker": [10, 20]},
        "evaluated_on": "validation",
        "exchanges": {"mean": 4.5, "per_worker": [9, 0]},
        "accuracy": {"mean": pytest.approx(0.5), "std": pytest.approx(0.1), "per_worker": [0.4, 0.6]},
        "full_accuracy": {"mean": None, "std": None, "per_worker": []},
        "final_accuracy": {"mean": pytest.approx(1.4 / 3), "evaluations": 3},
        "time_to_accuracy": {
            "0.1": 100.0,
            "0.2": 100.0,
            "0.3": 100.0,
            "0.4": 200.0,
            "0.5": 200.0,
            "0.55": 200.0,
            "0.6": 200.0,
            "0.7": None,
            "0.8": None,
            "0.9": None,
            "0.95": None,
        },
        "not_before": {
            **dict.fromkeys(("0.1", "0.2", "0.3")),
            **dict.fromkeys(("0.4", "0.5", "0.55", "0.6"), 100.0),
        },
        "late": None,
        "diverged": [],
    }


def test_full_accuracy_is_on_all_samples_at_the_end() -> None:
    some = summarize(**FACTS, evaluation_samples={"curve": 10, "full": 99}, full_evaluation={0: 0.3, 1: 0.5})
    assert some["full_accuracy"] == {"mean": 0.4, "std": pytest.approx(0.1), "per_worker": [0.3, 0.5]}
    assert some["accuracy"]["per_worker"] == [0.4, 0.6]
    every = summarize(**FACTS, evaluation_samples={"curve": 99, "full": 99})
    assert every["full_accuracy"] == every["accuracy"]


def test_totals_of_packets_only_if_there_are_any() -> None:
    transport = {"lost": 0.1, "resent": 0.0, "saved": 0.1, "messages": 0, "completion": dict.fromkeys(("mean", "p50"))}
    assert summarize(**FACTS, transport=transport)["transport"] == transport
    assert "transport" not in summarize(**FACTS)


def test_a_run_without_an_evaluation_has_nulls() -> None:
    nothing = summarize(**{**FACTS, "evaluations": [], "wall_seconds": 0.0, "losses": {}})
    assert nothing["final_accuracy"] == {"mean": None, "evaluations": 0}
    assert nothing["accuracy"] == {"mean": None, "std": None, "per_worker": []}
    assert set(nothing["time_to_accuracy"].values()) == {None}
    assert nothing["samples_per_wall_second"] is None
    assert nothing["evaluation_share"] is None
    assert nothing["diverged"] == []


@pytest.mark.parametrize(
    ("accuracies", "mean", "evaluations"),
    [
        # All in the last tenth of 100 s.
        ([(50.0, 0.1), (90.0, 0.4), (93.0, 0.6), (96.0, 0.6), (100.0, 0.8)], 0.6, 4),
        # At least three.
        ([(0.0, 0.1), (25.0, 0.2), (50.0, 0.5), (75.0, 0.7), (100.0, 0.6)], 0.6, 3),
        # Never what was not trained, unless that is all there is.
        ([(0.0, 0.1), (50.0, 0.5), (100.0, 0.7)], 0.6, 2),
        ([(0.0, 0.1)], 0.1, 1),
    ],
)
def test_the_final_accuracy_is_the_mean_of_the_last_evaluations(
    accuracies: list[tuple[float, float]], mean: float, evaluations: int
) -> None:
    summary = summarize(
        **{
            **FACTS,
            "ending": Ending("completed", "time", 100.0),
            "evaluations": [(time, {0: accuracy - 0.05, 1: accuracy + 0.05}) for time, accuracy in accuracies],
        }
    )
    assert summary["final_accuracy"] == {"mean": pytest.approx(mean), "evaluations": evaluations}
    assert summary["accuracy"]["mean"] == pytest.approx(accuracies[-1][1])


def test_a_loss_that_is_not_finite_or_ten_times_the_first_one_is_divergence() -> None:
    losses = {4: (2.0, math.nan), 5: (1.0, 19.0), 7: (math.inf, math.inf), 8: (1.5, 21.0), 9: (math.nan, math.nan)}
    summary = summarize(**{**FACTS, "losses": losses, "iterations": dict.fromkeys((4, 5, 6, 7, 8, 9), 1)})
    assert summary["diverged"] == [4, 7, 8, 9]


def test_divergence_is_not_relative_to_the_low_first_loss_of_a_joining_worker() -> None:
    losses = {0: (2.3, 0.1), 1: (0.01, 0.4)}
    summary = summarize(**{**FACTS, "losses": losses, "iterations": {0: 9, 1: 2}})
    assert summary["diverged"] == []


def test_an_accuracy_of_nan_is_null_in_json_and_reaches_nothing() -> None:
    summary = summarize(**{**FACTS, "evaluations": [(1.0, {0: math.nan, 1: 1.0})]})
    assert summary["time_to_accuracy"]["0.1"] is None
    assert b'"mean": null' in json_bytes(summary)


@given(evaluations, fractions)
def test_the_time_is_of_the_first_evaluation_whose_mean_reaches_it(
    runs: list[tuple[float, dict[int, float]]], accuracy: float
) -> None:
    reached = time_to_target(runs, accuracy, ACCURACY)
    means = {second: sum(row.values()) / len(row) for second, row in runs}
    before = [mean for second, mean in means.items() if reached is None or second < reached]
    assert all(mean < accuracy + 1e-12 for mean in before)
    assert reached is None or means[reached] >= accuracy - 1e-12


@given(evaluations, fractions, fractions)
def test_a_higher_accuracy_never_comes_earlier(
    runs: list[tuple[float, dict[int, float]]], one: float, other: float
) -> None:
    lower, higher = (time_to_target(runs, accuracy, ACCURACY) for accuracy in sorted((one, other)))
    assert higher is None or (lower is not None and lower <= higher)


def test_of_another_metric_the_summary_has_keys_of_its_own_and_less_may_be_better() -> None:
    evaluations = [(0.0, {0: 40.0, 1: 60.0}), (5.0, {0: 12.0, 1: 12.0}), (9.0, {0: 8.0, 1: math.inf})]
    facts = {**FACTS, "evaluations": evaluations, "metric": PERPLEXITY, "target": 12.5}
    summary = summarize(**facts)
    assert summary["time_to_metric"] == {"12.5": 5.0}
    assert summary["metric"]["per_worker"][:2] == [8.0, None]
    assert summary["metric"]["mean"] is None
    assert not {"accuracy", "final_accuracy", "time_to_accuracy"} & set(summary)
