"""Stalls of workers with outages, and of those that wait for them."""

import pytest

from dlion_sim.analysis.stalls.attribution import stalls, summary_sentence
from dlion_sim.simulation import simulate
from tests.simulation.churning import WAYS, churning

THREE = {
    "clouds": [
        {"name": "a", "workers": [{"count": 3, "compute": "1 cores", "nic": "80 Mbps"}], "lan": {"rtt": "100 ms"}}
    ]
}
COMPUTED = 0.5 + 16e-6
"""Seconds of a gradient."""


def three(folder, **availability):
    """Three workers in step do 8 iterations of 0.56 s; the third one goes in its third."""
    compute = "workload.compute_time={alpha: 500 ms, beta: 1 us}"
    options = {"cluster": THREE, "duration": "60 s", "workload.evaluate_every": "60 s"}
    return simulate(churning("baseline", availability, compute, "iterations=8", **options), folder)


def test_peers_wait_until_the_worker_has_joined(tmp_path):
    """It is away for 2 s, and joins a quarter of a second later; the others have computed their third gradient."""
    run = three(tmp_path / "run", workers={"a/2": {"down": [["1.2 s", "3.2 s"]]}}, on_loss="wait")
    (joined,) = run.membership().query("what == 'joined'")["virtual_time"]
    second = run.iterations().query("iteration == 2")["virtual_time"].max()
    found = stalls(run)
    wait = joined - (second + COMPUTED)
    assert found.seconds["churn"].tolist() == pytest.approx([wait, wait, joined - 1.2], abs=1e-4)
    assert 1.8 < wait < joined - 1.2 < 2.3
    assert found.shares.sum(axis=1).tolist() == pytest.approx([1.0] * 3)
    assert found.totals.tolist() == pytest.approx([run.iterations()["virtual_time"].max()] * 3)
    assert found.seconds["other"].tolist() == pytest.approx([0.0] * 3, abs=1e-6)
    assert found.waits.iloc[0][["kind", "sender"]].tolist() == ["churn", 2]
    assert "mostly for outages: 32%" in summary_sentence(found)


def test_an_outage_without_end_counts_until_the_others_end(tmp_path):
    run = three(tmp_path / "run", workers={"a/2": {"down": [["1.2 s", None]]}})
    end = run.iterations()["virtual_time"].max()
    found = stalls(run, warm_up=1)
    assert found.seconds["churn"].tolist() == pytest.approx([0.0, 0.0, end - 1.2])
    assert found.iterations == {0: 7, 1: 7, 2: 1}
    assert found.mean_iteration_seconds == pytest.approx(found.totals.sum() / 15)
    assert stalls(run, warm_up=5).shares.loc[2, "churn"] == 1.0


def test_peers_wait_until_the_loss_is_detected(tmp_path):
    """They have sent their third gradients into the void, and hear of it a second and half a round trip later."""
    run = three(tmp_path / "run", workers={"a/2": {"down": [["1.2 s", None]]}}, detection="1 s")
    second = run.iterations().query("iteration == 2")["virtual_time"].max()
    churn = stalls(run).seconds["churn"]
    assert churn[0] == churn[1] == pytest.approx(1.2 + 0.05 + 1 - (second + COMPUTED))


def test_a_late_worker_counts_from_the_others_warm_up(tmp_path):
    run = three(tmp_path / "run", workers={"a/2": {"down": [["0 s", "2 s"]]}})
    (joined,) = run.membership().query("what == 'joined'")["virtual_time"]
    assert stalls(run).seconds.loc[2, "churn"] == pytest.approx(joined)
    first = run.iterations().query("worker == 0")["virtual_time"].min()
    assert stalls(run, warm_up=1).seconds.loc[2, "churn"] == pytest.approx(joined - first)


@pytest.mark.parametrize(
    ("system", "way"), [("ako", "rejoin"), ("dlion", "notice"), ("hop", "cloud"), ("parameter_server", "rejoin")]
)
def test_kinds_sum_to_the_workers_time_for_every_system(tmp_path, system, way):
    """With profiles, leaves and handovers while somebody is away."""
    found = stalls(simulate(churning(system, WAYS[way]), tmp_path / "run"))
    assert found.totals.tolist() == pytest.approx([2.0] * 4, rel=0.01)
    assert found.shares.sum(axis=1).tolist() == pytest.approx([1.0] * 4)
    assert (found.seconds >= 0).all(axis=None)
    assert found.seconds.loc[3, "churn"] > 0.3
    assert (found.shares["other"] < 0.01).all()
