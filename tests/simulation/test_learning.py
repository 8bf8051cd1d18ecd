"""Whole systems with other classes on each worker: only correct communication teaches all workers all classes."""

import numpy as np
import pytest

from dlion_sim.learning import load
from dlion_sim.protocol.systems import SYSTEMS
from dlion_sim.simulation import simulate
from tests.simulation.scenarios import digits

UNEQUAL = {
    "clouds": [
        {
            "name": "east",
            "workers": [
                {"compute": {"cores": 16, "noise": 0.3}, "nic": "20 Mbps"},
                {"compute": {"cores": 6, "noise": 0.3}, "nic": "8 Mbps"},
            ],
        },
        {"name": "west", "workers": [{"count": 2, "compute": {"cores": 10, "noise": 0.3}, "nic": "10 Mbps"}]},
    ],
    "wan": {"bandwidth": "12 Mbps", "rtt": "60 ms"},
}
"""Four workers, none of which is in step with another."""
ALIKE = {
    "clouds": [{"name": name, "workers": [{"nic": "20 Mbps"}]} for name in ("east", "west")],
    "wan": {"bandwidth": "unlimited", "rtt": "0.1 s"},
}
"""Two workers that do the same at the same times, and whose messages meet on their way."""

PERIODS = {
    "local_sgd": {"exchange": {"period": 5}},
    "diloco": {"exchange": {"period": 5}},
    "async_local_sgd": {"exchange": {"period": 5}},
    "decoupled_diloco": {"exchange": {"period": 10, "delay": 2}},
    "fedavg": {"exchange": {"participation": 0.5, "epochs": 0.05}},
    "halos": {"exchange": {"period": 2, "region_updates": 2, "merge": 0.5, "global_learning_rate": 0.5}},
    "sparta": {"exchange": {"part": 0.2}},
    "streaming_diloco": {"exchange": {"period": 10, "delay": 2, "alpha": 0}},
    "sparse_loco": {"exchange": {"period": 5}},
    "noloco": {"exchange": {"period": 5}},
    "moshpit": {"exchange": {"period": 5}},
    "dlion_sparse": {"exchange": {"density": 0.05}},
    "dlion": {"batching": {"profile_repeats": 1}, "knowledge_transfer": {"period": 20}},
}
"""So short, or so large, that a short run exchanges enough."""


FEW = "{kind: label_shards, shards_per_worker: 1}"
"""A partition by which each worker has a few successive classes."""
PARTITIONS = {"gossipgrad": "iid"}
"""It averages gradients, half of which are a worker's own: on data that are not alike, workers stay apart."""


def learned(folder, cluster, system, *settings):
    """A run, and the accuracy that no worker can exceed alone."""
    partition = f"workload.partition={PARTITIONS.get(system['name'], FEW)}"
    run = simulate(digits(partition, "duration=30 s", *settings, cluster=cluster, system=system), folder)
    of_classes = np.bincount(load("digits").test_targets) / len(load("digits").test_targets)
    return run, max(of_classes[np.array(held) > 0].sum() for held in run.manifest["partition"])


@pytest.mark.parametrize("cluster", [UNEQUAL, ALIKE], ids=["unequal", "alike"])
@pytest.mark.parametrize("name", sorted(SYSTEMS))
def test_every_system_learns_more_than_any_worker_could_alone(tmp_path, name, cluster):
    run, alone = learned(tmp_path / "run", cluster, {"name": name, **PERIODS.get(name, {})})
    assert run.summary["diverged"] == []
    assert run.summary["accuracy"]["mean"] > (0.9 if name in PARTITIONS else max(0.75, alone + 0.1))


def test_akos_workers_learn_at_a_higher_rate_if_they_are_at_unlike_partitions(tmp_path):
    """Six in step, whose messages take two iterations, so that all change the same entries at once, or do not."""
    cluster = {
        "clouds": [{"name": name, "workers": [{"nic": "1 Gbps"}]} for name in "abcdef"],
        "wan": {"bandwidth": "unlimited", "rtt": "80 ms"},
    }
    settings = ("workload.compute_time={alpha: 20 ms, beta: 0 ms}", "workload.optimizer.learning_rate=0.4")
    accuracies = []
    for first in ("same", "spread"):
        system = {
            "name": "ako",
            "exchange": {"partitions": 16, "first": first},
            "synchronization": {"kind": "bounded_staleness", "staleness": 5},
        }
        run = simulate(digits("duration=6 s", *settings, cluster=cluster, system=system), tmp_path / first)
        accuracies.append(run.summary["accuracy"]["mean"])
    assert accuracies[0] + 0.1 < accuracies[1]
    assert accuracies[1] > 0.9


@pytest.mark.parametrize("optimizer", ["{kind: adam, learning_rate: 0.001}", "{learning_rate: 0.01, momentum: 0.9}"])
def test_few_entries_of_an_optimizers_steps_teach_all_classes(tmp_path, optimizer):
    system = {"name": "dlion_sparse", **PERIODS["dlion_sparse"]}
    run, alone = learned(tmp_path, UNEQUAL, system, f"workload.optimizer={optimizer}")
    assert run.summary["accuracy"]["mean"] > alone + 0.1


@pytest.mark.parametrize("route", ["all_to_all", "ring"])
def test_half_precision_halves_the_bytes_and_keeps_the_accuracy(tmp_path, route):
    runs = []
    for precision in ("fp32", "fp16", "bf16"):
        exchange = {"period": 5, "route": route, "precision": precision}
        scenario = digits(
            cluster=UNEQUAL, system={"name": "diloco", "exchange": exchange}, iterations=150, duration=None
        )
        runs.append(simulate(scenario, tmp_path / precision))
    single, *halves = (run.summary for run in runs)
    payload = single["bytes_sent"] - 2 * (single["bytes_sent"] - halves[0]["bytes_sent"])
    assert 0 <= payload < 0.01 * single["bytes_sent"], "headers"
    assert single["accuracy"]["mean"] > 0.9
    for half in halves:
        assert half["accuracy"]["mean"] == pytest.approx(single["accuracy"]["mean"], abs=0.01)
        assert half["bytes_sent"] == halves[0]["bytes_sent"]
        assert len({*half["accuracy"]["per_worker"]}) == 1, "all end with the same parameters"


@pytest.mark.parametrize("cluster", [UNEQUAL, ALIKE], ids=["unequal", "alike"])
def test_workers_that_never_communicate_do_not_learn_all_classes(tmp_path, cluster):
    run, alone = learned(tmp_path / "run", cluster, {"name": "local_sgd", "exchange": {"period": 10**6}})
    assert run.summary["accuracy"]["mean"] <= alone < 0.65
