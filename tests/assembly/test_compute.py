"""How long computations take on machines that may change and be noisy."""

import numpy as np
import pytest

from dlion_sim.assembly import ComputeDevice
from dlion_sim.scenario import Compute


def device(compute, alpha=0.01, beta=0.06, seed=0):
    return ComputeDevice(Compute.model_validate(compute), alpha=alpha, beta=beta, rng=np.random.default_rng(seed))


def test_time_is_alpha_plus_beta_times_the_batch_over_the_cores():
    assert device("24 cores").seconds(32, start=5.0) == pytest.approx(0.01 + 0.06 * 32 / 24)


def test_a_machine_that_slows_down_meanwhile_takes_longer():
    # 0.99 s of the work at 2 cores, the rest at 1.
    machine = device({"steps": {"0 s": "2 cores", "1 s": "1 cores"}})
    assert machine.seconds(100, start=0.0) == pytest.approx(1 + (6 - 1.98) / 1)


def test_a_machine_that_is_gone_for_good_never_ends():
    assert device({"steps": {"0 s": "2 cores", "1 s": "0 cores"}}).seconds(100, start=0.0) == float("inf")


def test_noise_has_median_one_and_its_sigma():
    machine = device({"cores": "6 cores", "noise": 0.3}, alpha=0.0)
    times = np.array([machine.seconds(100, start=0.0) for _ in range(4000)])
    logs = np.log(times / 1.0)
    assert np.median(logs) == pytest.approx(0, abs=0.02)
    assert logs.std() == pytest.approx(0.3, rel=0.05)
