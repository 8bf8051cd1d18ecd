"""SPARTA: a few parameters are averaged in an iteration, the same on all workers, and in the end all."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from dlion_sim.protocol.updates import LocalGradient
from dlion_sim.streams import stream
from tests.protocol.joined import noise, random_delays, run, team, trained

RATE = 0.1


@given(count=st.integers(1, 5), part=st.floats(0.01, 1.0), seed=st.integers(0, 5))
def test_sparta_is_its_definition(count, part, seed):
    """Own steps, then the mean of the chosen entries, under any delays."""
    expected = np.zeros((count, 6))
    for iteration in range(6):
        expected -= RATE * np.stack([noise(worker, iteration).numpy() for worker in range(count)])
        chosen = stream(0, "sparta", iteration).choice(6, max(1, round(part * 6)), replace=False)
        expected[:, chosen] = expected[:, chosen].mean(axis=0)
    found = np.stack(trained({"name": "sparta", "exchange": {"part": part}}, count, 6, seed=seed))
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_disagreement_contracts_and_the_mean_stays():
    """Without gradients all workers converge to the mean of their initial parameters."""
    workers = team({"name": "sparta", "exchange": {"part": 0.2}}, 4, iterations=60)
    for index, worker in enumerate(workers):
        worker.replica.parameters.copy_(noise(index, 0))
    mean = torch.stack([noise(index, 0) for index in range(4)]).mean(dim=0)
    run(workers, lambda worker, batch_size: (1.0, torch.zeros(6)), delays=random_delays(3, unequal=True))
    for worker in workers:
        torch.testing.assert_close(worker.replica.parameters, mean, atol=1e-5, rtol=0)


def test_a_half_percent_of_the_parameters_goes_to_each_peer():
    (one, *_) = team({"name": "sparta"}, 3, variables=(900, 1100))
    messages = one.choices.exchange.outgoing(LocalGradient(0, 8, torch.zeros(2000), 1.0, 1.0, 0.0)).messages
    assert [len(message.tensors[0]) for _, message in messages] == [10, 10]
