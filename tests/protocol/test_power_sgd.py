"""PowerSGD: its definition, what is sent whole, and what becomes of the rest."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dlion_sim.assembly import Transfer
from dlion_sim.protocol.exchange.power_sgd import Factor
from dlion_sim.protocol.messages import MalformedMessageError, Message
from dlion_sim.streams import stream
from tests.protocol.joined import noise, noisy, random_delays, run, sent_by, team, trained

RATE = 0.1
VARIABLES = ((6, 5), 4, (4, 2, 3))
SIZES, ROWS = (30, 4, 24), (6, 1, 4)


def powered(count, rank, iterations=6, seed=None, variables=VARIABLES):
    system = {"name": "power_sgd", "exchange": {"rank": rank}}
    workers = team(system, count, iterations=iterations, variables=variables)
    sent = sent_by(workers)
    run(workers, noisy, delays=(lambda _: 0.0) if seed is None else random_delays(seed, unequal=True))
    return workers, sent


@given(count=st.integers(1, 4), rank=st.integers(1, 2), seed=st.integers(0, 5))
def test_it_does_what_the_definition_says(count, rank, seed):
    """In float64, with orthonormal columns by the modified Gram-Schmidt process."""
    workers, _ = powered(count, rank, seed=seed)
    rng = stream(0, "power_sgd")
    right = [rng.standard_normal((n, rank), dtype="float32").astype(float) for n in (5, 6)]
    theta, residuals = np.zeros(58), np.zeros((count, 58))
    for iteration in range(6):
        sums = [residuals[each] + noise(each, iteration, 58).numpy() for each in range(count)]
        total = np.zeros(58)
        for place, (begin, end, rows) in enumerate([(0, 30, 6), (34, 58, 4)]):
            matrices = [each[begin:end].reshape(rows, -1) for each in sums]
            left = np.mean([matrix @ right[place] for matrix in matrices], axis=0)
            for column in range(rank):
                for before in range(column):
                    left[:, column] -= left[:, before] * (left[:, before] @ left[:, column])
                left[:, column] /= np.linalg.norm(left[:, column])
            right[place] = np.mean([matrix.T @ left for matrix in matrices], axis=0)
            total[begin:end] = (left @ right[place].T).ravel()
        total[30:34] = np.mean([each[30:34] for each in sums], axis=0)
        residuals = np.stack(sums) - total
        residuals[:, 30:34] = 0
        theta -= RATE * total
    for worker in workers:
        np.testing.assert_allclose(worker.replica.parameters, theta, atol=1e-3)
        assert torch.equal(worker.replica.parameters, workers[0].replica.parameters)


def test_what_two_factors_would_not_shorten_is_sent_whole():
    """Then it is Baseline: of rank 3, both matrices have fewer entries than their factors."""
    workers, sent = powered(3, rank=3)
    expected = trained({"name": "baseline"}, 3, 6, gradients=noisy, variables=VARIABLES)
    torch.testing.assert_close(workers[0].replica.parameters, expected[0])
    assert [len(message.tensors[0]) for message in sent[0] if isinstance(message.body, Factor)] == [58, 58, 0, 0] * 6


def test_a_larger_model_is_charged_the_factors_of_wider_layers():
    """With layers twice as wide, four times the parameters."""
    (small, large) = (powered(2, rank=2, iterations=1, variables=((8 * k, 12 * k),))[1][0] for k in (1, 2))
    assert [message.tensors[0].numel() for message in small] == [2 * 8, 2 * 12]
    for message, wider in zip(small, large, strict=True):
        assert Transfer(1, message, 0.0, scale=4.0).size == wider.size


def test_the_factors_are_sent():
    _, sent = powered(2, rank=2, iterations=1)
    assert [len(message.tensors[0]) for message in sent[0]] == [2 * 6 + 4 + 2 * 4, 2 * (5 + 6)]


@pytest.mark.parametrize("count", [1, 3])
def test_what_is_not_sent_comes_later(count):
    """The mean of all gradients is what was applied and the mean of the residuals."""
    workers, _ = powered(count, rank=1, iterations=20)
    mean = sum(noise(each, k, 58) for each in range(count) for k in range(20)) / count
    residual = sum(worker.choices.exchange._residual for worker in workers) / count
    applied = -workers[0].replica.parameters / RATE
    torch.testing.assert_close(applied + residual, mean, atol=1e-3, rtol=0)


@pytest.mark.parametrize(
    ("sender", "iteration", "side", "count"),
    [(1, 0, 0, 23), (1, 0, 1, 22), (1, 1, 0, 24)],
    ids=["too short", "the next round", "the next iteration"],
)
def test_terms_are_the_next_ones_of_their_sender(sender, iteration, side, count):
    worker = team({"name": "power_sgd", "exchange": {"rank": 2}}, 2, variables=VARIABLES)[0]
    exchange = worker.choices.exchange
    with pytest.raises(MalformedMessageError, match="not the next ones"):
        exchange.received(Message(sender, Factor(iteration, side), (torch.zeros(count),)))
    exchange.received(Message(1, Factor(0, 0), (torch.zeros(24),)))
    with pytest.raises(MalformedMessageError, match="not the next ones"):
        exchange.received(Message(1, Factor(0, 0), (torch.zeros(24),)))
