import pytest
import torch

from dlion_sim.errors import InputError
from dlion_sim.scenario import from_data
from dlion_sim.scenario.workload import CosineDecay, StepDecay

CLUSTER = {"clouds": [{"name": "lab", "workers": [{"count": 2, "compute": "4 cores", "nic": "50 Mbps"}]}]}


def optimizer(**spec):
    workload = {"dataset": "digits", "model": "mlp", "optimizer": spec}
    data = {"name": "x", "duration": "1 s", "workload": workload, "cluster": CLUSTER, "system": "baseline"}
    return from_data(data).workload.optimizer


def test_a_learning_rate_is_constant_unless_said_otherwise():
    schedule = optimizer().schedule
    assert [schedule.factor(step) for step in (0, 10, 10**6)] == [1, 1, 1]


def test_a_learning_rate_falls_in_steps():
    schedule = optimizer(schedule={"kind": "step", "every": 10, "by": 0.5}).schedule
    assert [schedule.factor(step) for step in (0, 9, 10, 19, 20)] == [1, 1, 0.5, 0.5, 0.25]
    assert StepDecay(every=10).factor(25) == pytest.approx(0.01)


def test_a_learning_rate_falls_along_half_a_cosine():
    schedule = optimizer(schedule={"kind": "cosine", "steps": 100, "end": 0.2}).schedule
    assert [schedule.factor(step) for step in (0, 50, 100, 1000)] == pytest.approx([1, 0.6, 0.2, 0.2])
    assert CosineDecay(steps=4).factor(4) == pytest.approx(0)


@pytest.mark.parametrize(("steps", "end"), [(1, 0.0), (7, 0.0), (100, 0.2)])
def test_the_cosine_is_torchs(steps, end):
    reference = torch.optim.SGD([torch.zeros(1)], lr=0.4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(reference, T_max=steps, eta_min=0.4 * end)
    schedule = CosineDecay(steps=steps, end=end)
    for step in range(steps + 1):
        assert 0.4 * schedule.factor(step) == pytest.approx(scheduler.get_last_lr()[0], abs=1e-12)
        reference.step()
        scheduler.step()


@pytest.mark.parametrize(
    ("schedule", "path"),
    [
        ({"kind": "step", "every": 0}, "workload.optimizer.schedule.every"),
        ({"kind": "step", "every": 5, "by": 1.5}, "workload.optimizer.schedule.by"),
        ({"kind": "cosine"}, "workload.optimizer.schedule.steps"),
        ({"kind": "linear"}, "workload.optimizer.schedule"),
    ],
)
def test_a_bad_schedule_is_named(schedule, path):
    with pytest.raises(InputError) as error:
        optimizer(schedule=schedule)
    assert error.value.path == path


def test_a_learning_rate_warms_up_before_its_schedule_begins() -> None:
    warmed = optimizer(warmup=4, schedule={"kind": "cosine", "steps": 100, "end": 0.2})
    assert [warmed.factor(step) for step in (0, 1, 3, 4, 54, 104, 1000)] == pytest.approx(
        [0.2, 0.4, 0.8, 1, 0.6, 0.2, 0.2]
    )
    assert optimizer().factor(0) == 1


@pytest.mark.parametrize(
    ("given", "path", "words"),
    [
        ({"kind": "adamw", "momentum": 0.9}, "workload.optimizer.momentum", "momentum is for sgd"),
        ({"kind": "adam", "weight_decay": 0.1}, "workload.optimizer.weight_decay", "with one it is adamw"),
        ({"clip_norm": 0}, "workload.optimizer.clip_norm", "more than 0"),
        ({"warmup": -1}, "workload.optimizer.warmup", "0 or more"),
    ],
)
def test_what_does_not_go_with_an_optimizer_is_refused(given: dict[str, object], path: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as refused:
        optimizer(**given)
    assert refused.value.path == path
