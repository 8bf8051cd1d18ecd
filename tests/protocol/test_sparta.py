"""SPARTA: a few parameters are averaged at a time, the same on all workers, and in the end all of them are."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dlion_sim.protocol.compose import compose
from dlion_sim.protocol.events import MessageArrived
from dlion_sim.protocol.exchange.sparta import Scattered
from dlion_sim.protocol.messages import MalformedMessageError, Message
from dlion_sim.scenario import SystemSpec
from dlion_sim.streams import stream
from tests.protocol.joined import random_delays, run, team

RATE = 0.1


def gradient(worker, iteration):
    return torch.randn(6, generator=torch.Generator().manual_seed(1000 * worker + iteration))


def noise(worker, batch_size):
    return 1.0, gradient(worker.setup.worker, worker.iteration)


@given(count=st.integers(1, 5), part=st.floats(0.01, 1.0), seed=st.integers(0, 5))
def test_it_does_what_the_definition_says(count, part, seed):
    """Each takes its own step, then of the chosen entries the mean: however long messages take."""
    workers = team({"name": "sparta", "exchange": {"part": part}}, count, iterations=12)
    run(workers, noise, delays=random_delays(seed, unequal=True))
    expected = np.zeros((count, 6))
    for iteration in range(12):
        expected -= RATE * np.stack([gradient(worker, iteration).numpy() for worker in range(count)])
        chosen = stream(0, "sparta", iteration).choice(6, max(1, round(part * 6)), replace=False)
        expected[:, chosen] = expected[:, chosen].mean(axis=0)
    found = np.stack([worker.replica.parameters.numpy() for worker in workers])
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_disagreement_contracts_and_the_mean_stays():
    """Without gradients all come together, at the mean of where they began."""
    workers = team({"name": "sparta", "exchange": {"part": 0.2}}, 4, iterations=60)
    for index, worker in enumerate(workers):
        worker.replica.parameters.copy_(gradient(index, 0))
    mean = torch.stack([gradient(index, 0) for index in range(4)]).mean(dim=0)
    run(workers, lambda worker, batch_size: (1.0, torch.zeros(6)), delays=random_delays(3, unequal=True))
    for worker in workers:
        torch.testing.assert_close(worker.replica.parameters, mean, atol=1e-5, rtol=0)


def test_a_half_percent_of_the_parameters_goes_to_each_peer():
    (one, *_) = team({"name": "sparta"}, 3, variables=(900, 1100))
    from dlion_sim.protocol.updates import LocalGradient

    messages = one.choices.exchange.outgoing(LocalGradient(0, 8, torch.zeros(2000), 1.0, 1.0, 0.0)).messages
    assert [len(message.tensors[0]) for _, message in messages] == [10, 10]


@pytest.mark.parametrize("count", [0, 2, 6])
def test_as_many_come_as_are_averaged(count):
    (one, *_) = team({"name": "sparta"}, 3)
    with pytest.raises(MalformedMessageError):
        one.handle(MessageArrived(Message(1, Scattered(0, 8), (torch.ones(count),))), 0.0)


def test_it_is_a_system_of_one_file():
    system = compose(SystemSpec(name="sparta"))
    assert {choice.implementation.__module__ for choice in system.choices.values()} & {
        "dlion_sim.protocol.exchange.sparta"
    }
    assert system.choices["synchronization"].kind == "synchronous"
