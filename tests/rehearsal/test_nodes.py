"""Nodes on a GPU: parameters stay in main memory, and gradients and scores come from the GPU."""

import asyncio
from contextlib import closing

import pytest
import torch

from dlion_sim.assembly import Setting
from dlion_sim.calibration.iterations import alone, time_iterations
from dlion_sim.live.member import Member
from tests.learning.test_fused import ROUNDING
from tests.rehearsal.device import MACHINE
from tests.simulation.scenarios import digits

CPU = torch.device("cpu")


def setting(device):
    return Setting.of(digits("workload.compute_time={alpha: 1 ms, beta: 0 s}"), device, home=CPU)


@pytest.mark.parametrize("system", ["dlion", "diloco"])
def test_a_workers_gradients_are_those_of_a_cpu_and_in_main_memory(rehearsal, system):
    losses, gradients = [], []
    for device in (CPU, rehearsal):
        made = Setting.of(digits(system=system), device, home=CPU)
        with closing(Member.of(made, 0, paced=True)) as member:
            computed = asyncio.run(member.machine.gradient(16, 0.0, 0.0))
            losses.append(computed.loss)
            gradients.append(computed.gradient)
            assert member.participant.replica.parameters.device == CPU
            assert member.machine.lateness.computations == 1
    assert {each.device for each in gradients} == {CPU}
    assert losses[1] == pytest.approx(losses[0], rel=ROUNDING)
    assert (gradients[1] - gradients[0]).norm() <= ROUNDING * gradients[0].norm()


def test_a_gradient_takes_parameters_and_samples_there_and_comes_back_once(rehearsal):
    with closing(Member.of(setting(rehearsal), 0, paced=False)) as member, MACHINE.counted() as crossings:
        asyncio.run(member.machine.gradient(16, 0.0, 0.0))
    size = member.participant.replica.parameters.nbytes
    assert sorted(each.kind for each in crossings if each.nbytes >= size) == ["to device", "to host"]


def test_scores_are_those_of_a_cpu(rehearsal):
    scores = []
    for device in (CPU, rehearsal):
        made = setting(device)
        with closing(made.evaluator(threads=1)) as evaluator:
            scores += evaluator.evaluate([made.worker(0).replica])
    assert scores[1].loss == pytest.approx(scores[0].loss, rel=1e-5)


def test_iterations_of_a_node_on_a_gpu_can_be_timed(rehearsal, monkeypatch):
    monkeypatch.setattr("dlion_sim.calibration.iterations._ROUNDS", 1)
    monkeypatch.setattr("dlion_sim.calibration.iterations._SECONDS", 0.0)
    times = time_iterations(Setting.of(alone(digits()), rehearsal, home=CPU), [4, 8])
    assert min(map(min, times.values())) > 0
