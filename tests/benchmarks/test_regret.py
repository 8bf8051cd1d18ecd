"""The regret of a recommendation, from candidates that were run to the end."""

from benchmarks.regret import measured, row
from tests.made_up import made_up_run


def test_the_recommended_candidate_is_compared_with_the_fastest_one(tmp_path):
    curves = {"dlion": (0.1, 0.2, 0.5, 0.7), "ako": (0.1, 0.5, 0.6, 0.6), "hop": (0.1, 0.1, 0.1, 0.2)}
    runs = []
    for name, curve in curves.items():
        for seed in (0, 1):
            point = {"system": name, "workload.optimizer.learning_rate": "0.1"}
            folder = tmp_path / f"{name}{seed}"
            runs.append(made_up_run(folder, curve, seed=seed, point=point, extra="target_accuracy: 0.5"))
    document = {
        "winner": {"in_words": "dlion, learning rate 0.1"},
        "samples": {"simulated": 30, "exhaustive": 120},
    }
    assert row("made-up", document, measured(runs)) == [
        "made-up",
        "dlion, learning rate 0.1: 20 s",
        "ako, learning rate 0.1: 10 s",
        "10.0 (100%)",
        "10.0",
        "2 of 3",
        "25%",
    ]
