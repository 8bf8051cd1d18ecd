"""The time of a message is that of two live nodes, without their computations."""

from __future__ import annotations

from pathlib import Path

import pytest

from dlion_sim.calibration.messages import of_iterations, time_messages
from dlion_sim.simulation import simulate
from tests.simulation.scenarios import digits

CLOUD = {
    "clouds": [{"name": "a", "workers": [{"count": 2, "compute": "8 cores", "nic": "100 Gbps"}], "lan": {"rtt": "0 s"}}]
}


@pytest.mark.parametrize("seconds", [0.0, 0.004])
def test_a_simulation_takes_as_long_for_a_message_as_was_stated(tmp_path: Path, seconds: float) -> None:
    taken = f"workload.compute_time.per_message={seconds} s"
    run = simulate(digits(taken, cluster=CLOUD, system="baseline", duration=None, iterations=6), tmp_path / "run")
    assert of_iterations(run) == pytest.approx(seconds, abs=1e-4)


def test_two_nodes_are_timed_whatever_the_scenario_has() -> None:
    """Selecting, sending and applying a small gradient takes some milliseconds at most."""
    lost = {"workers": {"east/1": {"down": [["100 ms", "200 ms"]]}}}
    scenario = digits("seed=4", system="dlion", target_accuracy=0.5, duration="1 h", availability=lost)
    assert 1e-5 < time_messages(scenario, 0.001, "cpu") < 0.1
