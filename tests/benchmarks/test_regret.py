"""The regret of a recommendation, from candidates that were run to the end."""

import pytest

from benchmarks.regret import measured, row
from tests.made_up import made_up_run


def test_the_recommended_candidate_is_compared_with_the_fastest_one(tmp_path):
    curves = {"ring": (0.1, 0.5, 0.8), "dlion": (0.1, 0.8, 0.85), "slow": (0.1, 0.2, 0.3)}
    runs = [
        made_up_run(
            tmp_path / f"{system}-{seed}",
            curve,
            scenario="fleet",
            seed=seed,
            point={"system": system, "workload.optimizer.learning_rate": "0.1", "seed": str(seed)},
        )
        for system, curve in curves.items()
        for seed in (0, 1)
    ]
    runs.append(made_up_run(tmp_path / "other", scenario="another", point={"system": "ring"}))
    of_fleet = measured(runs[:-1], 0.6)
    assert of_fleet.loc["ring, learning rate 0.1"].seconds == 20
    assert of_fleet.loc["slow, learning rate 0.1"].seconds == 20, "its runs end without the target"
    assert of_fleet.loc["dlion, learning rate 0.1"].metric == pytest.approx(0.825)
    document = {
        "scenario": "fleet",
        "target": {"value": 0.6},
        "winner": {"in_words": "ring, learning rate 0.1"},
        "samples": {"simulated": 30, "exhaustive": 100},
    }
    assert row(document, runs) == [
        "fleet",
        "ring, learning rate 0.1: 20 s",
        "dlion, learning rate 0.1: 10 s",
        "10.0 (100%)",
        "17.5",
        "2 of 3",
        "30%",
    ]
