"""SparseLoCo: what is selected, in how many bytes, and that nothing of a pseudo-gradient is lost."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dlion_sim.protocol.exchange.sparse_loco import CHUNK, Packed, pack, unpack
from dlion_sim.protocol.messages import Message, decode
from tests.protocol.joined import noise, noisy, run, team, trained

RATE = 0.1


def selected(values, density):
    """By the definition, in float64: the mean of each of four levels, around the mean, 1.5 standard deviations wide."""
    found = np.zeros(len(values))
    places = []
    for begin in range(0, len(values), CHUNK):
        chunk = values[begin : begin + CHUNK]
        count = max(1, round(len(chunk) * density))
        places += (begin + np.argsort(-np.abs(chunk), kind="stable")[:count]).tolist()
    chosen = values[places]
    levels = np.clip(np.floor((chosen - chosen.mean()) / max(chosen.std(), 1e-30) / 1.5 + 2), 0, 3)
    for level in range(4):
        found[np.array(places)[levels == level]] = chosen[levels == level].mean() if (levels == level).any() else 0
    return found


@given(size=st.integers(1, 3 * CHUNK), density=st.floats(0.001, 1.0), seed=st.integers(0, 99))
def test_the_largest_entries_of_each_chunk_are_sent_in_four_levels(size, density, seed):
    values = torch.randn(size, generator=torch.Generator().manual_seed(seed))
    tensors = pack(values, density)
    message = decode(Message(0, Packed(29, 8), tensors).encode(), workers=2, parameters=size)
    expected = selected(values.numpy().astype(float), density)
    np.testing.assert_allclose(unpack(message.tensors, size, density), expected, atol=1e-5)


def test_a_chunk_takes_112_bytes():
    """64 of 4,096 entries in 14 bits, in place of 16 kB: 146 times less."""
    (_, packed) = pack(torch.randn(10 * CHUNK), 1 / 64)
    assert len(packed) == 10 * 112


def test_zeros_are_sent_as_zeros():
    for size in (1, CHUNK + 1):
        assert not unpack(pack(torch.zeros(size), 0.1), size, 0.1).any()


@given(
    count=st.integers(1, 4),
    density=st.sampled_from([0.2, 0.5, 1.0]),
    decay=st.sampled_from([0.5, 1.0]),
    seed=st.integers(0, 5),
)
def test_it_does_what_the_definition_says(count, density, decay, seed):
    exchange = {"period": 3, "density": density, "decay": decay, "outer_learning_rate": 0.7}
    found = trained({"name": "sparse_loco", "exchange": exchange}, count, 12, seed=seed)
    start, theta, residual = np.zeros(6), np.zeros((count, 6)), np.zeros((count, 6))
    for iteration in range(12):
        theta -= RATE * np.stack([noise(worker, iteration).numpy() for worker in range(count)])
        if iteration % 3 == 2:
            residual = decay * residual + start - theta
            sent = np.stack([selected(each, density) for each in residual])
            residual -= sent
            start = start - 0.7 * sent.mean(axis=0)
            theta = np.tile(start, (count, 1))
    np.testing.assert_allclose(np.stack(found), theta, atol=1e-4)


def test_what_is_not_sent_comes_later():
    """Without decay, what was sent and what remains are together all that a worker has moved."""
    exchange = {"period": 1, "density": 0.2, "decay": 1.0}
    (worker,) = team({"name": "sparse_loco", "exchange": exchange}, 1, iterations=40)
    moved = -RATE * sum(noise(0, iteration) for iteration in range(40))
    run([worker], noisy)
    remains = worker.choices.exchange._residual
    torch.testing.assert_close(worker.replica.parameters - remains, moved, atol=1e-4, rtol=0)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_values_that_are_not_finite_stay_so_for_those_that_get_them(value):
    """In a run that diverges."""
    values = torch.arange(20.0)
    values[3] = value
    assert not unpack(pack(values, 0.5), 20, 0.5).isfinite().all()
