"""One learning rate for all systems, and each system's own."""

from dlion_sim.analysis import group_runs
from dlion_sim.studies.reproduction.claims import Rates
from dlion_sim.studies.reproduction.verdicts import by_regime, judged
from tests.made_up import made_up_run
from tests.studies.reproduction.test_verdicts import BETTER

RATE = "workload.optimizer.learning_rate"


def test_verdicts_are_per_regime(tmp_path):
    levels = {("baseline", "0.1"): 0.5, ("dlion", "0.1"): 0.4, ("dlion", "0.02"): 0.7, ("dlion", "0.5"): 0.1}
    runs = [
        made_up_run(
            tmp_path / f"{system}{rate}{seed}",
            [0.1, level + 0.001 * seed * (system == "dlion")],
            system=system,
            seed=seed,
            point={"system": system, RATE: rate},
            extra=f"rate: {rate}\n",
        )
        for (system, rate), level in levels.items()
        for seed in range(3)
    ]
    groups = by_regime(group_runs(runs), Rates(one=0.1, own={"baseline": 0.1, "dlion": 0.02}))
    assert [(group.labels["rates"], group.labels["system"]) for group in groups] == [
        ("one for all", "baseline"),
        ("one for all", "dlion"),
        ("own", "baseline"),
        ("own", "dlion"),
    ]
    assert all(RATE not in group.labels for group in groups)
    alone = by_regime(group_runs(runs), Rates(own={"baseline": 0.1, "dlion": 0.5}))
    assert {(group.labels["rates"], group.labels["system"]) for group in alone} == {
        ("own", "baseline"),
        ("own", "dlion"),
    }
    assert {verdict.where: verdict.direction for verdict in judged(BETTER, groups, 0.5)} == {
        "one for all": "opposite",
        "own": "same",
    }
