"""What computations count as: the modelled time where it is kept, and how often it was not."""

import asyncio
import time
from contextlib import closing
from dataclasses import asdict

import pytest
import torch

from dlion_sim.assembly import ComputeDevice, Setting
from dlion_sim.learning import GradientExecutor
from dlion_sim.live.machine import Machine
from dlion_sim.scenario import Compute
from dlion_sim.streams import stream
from tests.simulation.scenarios import digits

SETTING = Setting.of(digits())


def machine(alpha: float | None) -> Machine:
    """A machine that takes so many seconds for any batch, or as many as it really does."""
    executor = GradientExecutor(SETTING.model, SETTING.dataset, torch.device("cpu"), threads=1)
    pace = None if alpha is None else ComputeDevice(Compute(), alpha=alpha, beta=0.0, rng=stream(0))
    made = Machine(executor, SETTING.worker(0).replica, SETTING.sampler(0), pace)
    made.warm_up(16)
    return made


def computed(made: Machine, count: int = 3):
    async def one_after_another():
        return [await made.gradient(16, 0.0, 0.0) for _ in range(count)]

    return asyncio.run(one_after_another())


def test_a_gradient_is_held_back_until_its_modelled_time_is_over():
    with closing(machine(0.5)) as made:
        began = time.monotonic()
        assert [each.seconds for each in computed(made, 2)] == [0.5] * 2
        assert time.monotonic() - began >= 1.0
        assert asdict(made.lateness) == {"computations": 2, "late": 0, "seconds_late": 0.0, "most_seconds_late": 0.0}


def test_a_computation_that_takes_longer_counts_as_long_and_is_told():
    with closing(machine(1e-6)) as made:
        assert all(each.seconds > 1e-6 for each in computed(made))
        late = made.lateness
        assert (late.computations, late.late) == (3, 3)
        assert 0 < late.most_seconds_late <= late.seconds_late


def test_a_profile_times_each_size_and_uses_up_no_samples():
    with closing(machine(0.4)) as made:
        sizes, seconds = zip(*asyncio.run(made.profile((8, 32), 0.0, 0.0)), strict=True)
        assert sizes == (8, 32)
        assert seconds == pytest.approx((0.4, 0.4))
        (first,) = computed(made, 1)
    with closing(machine(0.4)) as fresh:
        (expected,) = computed(fresh, 1)
    assert torch.equal(first.gradient, expected.gradient)


def test_closing_lets_go_of_what_is_held_back():
    made = machine(1000.0)

    async def abandon():
        waiting = asyncio.create_task(made.gradient(16, 0.0, 0.0))
        await asyncio.sleep(0.1)
        waiting.cancel()

    asyncio.run(abandon())
    began = time.monotonic()
    made.close()
    assert time.monotonic() - began < 500
