"""Parameters and optimizers on a GPU, and from there to a CPU and back."""

import pytest
import torch

from dlion_sim.errors import InputError
from dlion_sim.learning import Layout, Replica, accelerator
from dlion_sim.simulation import resume, simulate
from tests.learning.conftest import CPU
from tests.rehearsal.device import MACHINE
from tests.simulation.checkpointing.test_checkpoint import After, scenario

LAYOUT = Layout(("weight", "bias", "out"), ((3, 4), (3,), (2, 3)))
RULES = [
    {},
    {"momentum": 0.9},
    {"kind": "adam"},
    {"kind": "adamw", "weight_decay": 0.1, "clip_norm": 0.3},
    {"kind": "muon"},
]


def gradient(number):
    return torch.randn(LAYOUT.size, generator=torch.Generator().manual_seed(number))


@pytest.mark.parametrize("to", ["gpu", "cpu"])
@pytest.mark.parametrize("rule", RULES)
def test_a_replica_takes_over_what_another_device_has_and_reads_nothing_from_then_on(rule, to, rehearsal):
    one, other = (Replica(LAYOUT, gradient(0).to(device), learning_rate=0.1, **rule) for device in (CPU, rehearsal))
    giver, taker = (one, other) if to == "gpu" else (other, one)
    for number in (1, 2):
        giver.step(gradient(number).to(giver.parameters.device))
    taker.take_over(giver.state())
    for number in (3, 4):
        gradients = {replica: gradient(number).to(replica.parameters.device) for replica in (giver, taker)}
        with MACHINE.counted() as crossings:
            for replica, each in gradients.items():
                replica.step(each)
        assert crossings == []
    torch.testing.assert_close(other.parameters.cpu(), one.parameters, rtol=1e-5, atol=1e-6)


def test_a_run_on_a_gpu_does_not_go_on_where_there_is_none(tmp_path, rehearsal, monkeypatch):
    run = simulate(scenario("baseline", "0.4 s"), tmp_path / "run", device="cuda", interrupted=After(12))
    monkeypatch.setattr(accelerator, "available", lambda: False)
    with pytest.raises(InputError, match="this machine has no GPU that PyTorch can use"):
        resume(run.folder)
    monkeypatch.undo()
