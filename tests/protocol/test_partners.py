"""Systems whose workers exchange with a partner or a group at a time, beside short programs of their definitions."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dlion_sim.errors import InputError
from dlion_sim.protocol.compose import compose
from dlion_sim.protocol.exchange.moshpit import grid
from dlion_sim.scenario import SystemSpec
from dlion_sim.streams import stream
from tests.protocol import joined
from tests.protocol.joined import noise, random_delays, run, team

RATE = 0.1


def gradients(count, iteration):
    return np.stack([noise(worker, iteration).numpy() for worker in range(count)]).astype(float)


def parameters(workers):
    return np.stack([worker.replica.parameters.numpy() for worker in workers])


def trained(system, count, iterations, seed):
    return np.stack(joined.trained(system, count, iterations, seed=seed))


@given(count=st.integers(1, 7), seed=st.integers(0, 5))
def test_gossipgrad_averages_gradients_with_one_partner(count, seed):
    expected = np.zeros((count, 6))
    for iteration in range(9):
        mine = gradients(count, iteration)
        if count > 1:
            steps = int(np.ceil(np.log2(count)))
            circle = stream(0, "gossipgrad", iteration // steps).permutation(count)
            before = np.empty(count, int)
            before[circle] = np.roll(circle, 2 ** (iteration % steps))
            mine = (mine + mine[before]) / 2
        expected -= RATE * mine
    np.testing.assert_allclose(trained({"name": "gossipgrad"}, count, 9, seed), expected, atol=1e-5)


@given(count=st.integers(1, 7), seed=st.integers(0, 5))
def test_push_sum_mixes_by_a_column_stochastic_matrix(count, seed):
    x, w = np.zeros((count, 6)), np.ones(count)
    for iteration in range(9):
        x = x - RATE * gradients(count, iteration)
        if count > 1:
            distance = 2 ** (iteration % int(np.ceil(np.log2(count))))
            x = (x + np.roll(x, distance, axis=0)) / 2
            w = (w + np.roll(w, distance)) / 2
    np.testing.assert_allclose(trained({"name": "sgp"}, count, 9, seed), x / w[:, None], atol=1e-5)


def test_overlapped_push_sum_conserves_numerators_and_weights_under_way():
    """Without gradients, the numerators' sum is what it was, however late messages come."""
    system = {"name": "sgp", "synchronization": {"kind": "bounded_staleness", "staleness": 3}}
    workers = team(system, 5, iterations=200)
    for index, worker in enumerate(workers):
        worker.replica.parameters.copy_(noise(index, 0))
    mean = gradients(5, 0).mean(axis=0)
    run(workers, lambda worker, batch_size: (1.0, torch.zeros(6)), delays=random_delays(3, unequal=True))
    np.testing.assert_allclose(parameters(workers), np.broadcast_to(mean, (5, 6)), atol=1e-3)


def test_push_sum_needs_its_receivers_as_peers():
    with pytest.raises(InputError, match=r"distance 1, 2, 4.*exponential or all_to_all"):
        team({"name": "sgp", "topology": "ring"}, 6)


@given(count=st.integers(1, 7), group=st.integers(2, 4), period=st.integers(1, 3), seed=st.integers(0, 5))
def test_noloco_does_what_the_paper_says(count, group, period, seed):
    """With both means, of theta - phi and of phi, as it is written."""
    system = {"name": "noloco", "exchange": {"period": period, "group": group}}
    theta, phi, m = np.zeros((count, 6)), np.zeros((count, 6)), np.zeros((count, 6))
    for iteration in range(9):
        theta = theta - RATE * gradients(count, iteration)
        if (iteration + 1) % period:
            continue
        shuffled = stream(0, "noloco", iteration).permutation(count)
        groups = max(1, count // group)
        for place in range(groups):
            members = shuffled[place::groups]
            pseudo_gradient, start = (theta - phi)[members].mean(axis=0), phi[members].mean(axis=0)
            m[members] = 0.5 * m[members] + 0.7 * pseudo_gradient + 0.7 * (start - phi[members])
        phi = phi + m
        theta = phi.copy()
    np.testing.assert_allclose(trained(system, count, 9, seed), theta, atol=1e-5)


def test_a_group_of_all_with_a_rate_of_one_is_local_sgd():
    exchange = {"period": 3, "group": 4, "outer_learning_rate": 1.0, "outer_momentum": 0.0}
    ours = trained({"name": "noloco", "exchange": exchange}, 4, 9, seed=1)
    theirs = trained({"name": "local_sgd", "exchange": {"period": 3}}, 4, 9, seed=2)
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize(("count", "dimensions"), [(4, 2), (9, 2), (8, 3), (3, 1)])
def test_a_full_grid_has_the_exact_mean_after_a_round_in_each_dimension(count, dimensions):
    system = {"name": "moshpit", "exchange": {"period": 1, "dimensions": dimensions}}
    workers = team(system, count, iterations=dimensions)
    for index, worker in enumerate(workers):
        worker.replica.parameters.copy_(noise(index, 0))
    run(workers, lambda worker, batch_size: (1.0, torch.zeros(6)), delays=random_delays(4, unequal=True))
    mean = gradients(count, 0).mean(axis=0)
    np.testing.assert_allclose(parameters(workers), np.broadcast_to(mean, (count, 6)), atol=1e-6)


@given(count=st.integers(1, 9), seed=st.integers(0, 5))
def test_moshpit_averages_along_one_axis_after_another(count, seed):
    side = int(np.ceil(np.sqrt(count)))
    expected = np.zeros((count, 6))
    for iteration in range(8):
        expected -= RATE * gradients(count, iteration)
        if iteration % 2 == 0:
            continue
        number = (iteration + 1) // 2
        other = grid(0, count, side, 2, number)[:, 1 - number % 2]
        for row in range(side):
            if (other == row).any():
                expected[other == row] = expected[other == row].mean(axis=0)
    system = {"name": "moshpit", "exchange": {"period": 2}}
    np.testing.assert_allclose(trained(system, count, 8, seed), expected, atol=1e-5)


@given(st.integers(1, 12), st.integers(1, 3), st.integers(0, 9))
def test_no_two_workers_are_in_a_cell_in_any_round(count, dimensions, number):
    side = next(m for m in range(1, 13) if m**dimensions >= count)
    cells = grid(3, count, side, dimensions, number)
    assert len({tuple(cell) for cell in cells.tolist()}) == count
    assert cells.min() >= 0
    assert cells.max() < side


def test_a_late_round_is_the_same_whether_or_not_earlier_ones_were_asked_for():
    late = grid(5, 10, 4, 2, 3000).copy()
    again = [grid(5, 10, 4, 2, number) for number in (1, 2, 2999, 3000)][-1]
    np.testing.assert_array_equal(late, again)


def test_a_grid_that_is_too_small_is_refused():
    with pytest.raises(InputError) as refused:
        team({"name": "moshpit", "exchange": {"side": 2}}, 6)
    assert "a grid of 2^2 cells is too small for 6 workers" in str(refused.value)
    assert "3 or more" in str(refused.value)


@pytest.mark.parametrize("name", ["moshpit", "noloco"])
@pytest.mark.parametrize("synchronization", ["asynchronous", {"kind": "bounded_staleness", "staleness": 5}])
def test_means_of_groups_need_all_in_step(name, synchronization):
    with pytest.raises(InputError, match=f"'exchange: {name}' needs all workers to be in step") as refused:
        compose(SystemSpec.model_validate({"name": name, "synchronization": synchronization}))
    assert refused.value.allowed == "synchronization: synchronous and topology: all_to_all; or another exchange"


@pytest.mark.parametrize("exchange", [{"route": "ring"}, {"precision": "fp16"}])
def test_means_of_all_by_a_ring_or_of_pseudo_gradients_need_all_in_step(exchange):
    with pytest.raises(InputError, match="needs all workers to be in step") as refused:
        compose(SystemSpec.model_validate({"name": "diloco", "exchange": exchange, "topology": "ring"}))
    assert refused.value.allowed.endswith("; or route: all_to_all and precision: fp32")
