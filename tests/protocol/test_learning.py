"""The properties that make systems learn, under delays: convergence, beside conservation.

Workers are joined by messages that are under way for random times, and each has data of its own: its loss is least
in another place than the others'. So a system that communicates nothing, or wrongly, converges to another place.
"""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch

from dlion_sim.protocol.compose import compose
from dlion_sim.protocol.events import MessageArrived
from dlion_sim.protocol.exchange.significance import SignificanceExchange
from dlion_sim.protocol.messages import Contribution
from dlion_sim.protocol.topology import mixing_weights
from dlion_sim.protocol.updates import LocalGradient
from dlion_sim.scenario import SystemSpec
from tests.protocol.flushing import flushed, let_go
from tests.protocol.joined import noise, random_delays, run, servers_of, setup, team

RATE = 0.1
CURVATURE = torch.tensor([1.0, 0.5, 0.8, 0.6, 1.0, 0.7])


def place(worker):
    """Where a worker's loss is least, [6]."""
    return 10 * torch.randn(6, generator=torch.Generator().manual_seed(77 + worker))


def slope(worker, parameters):
    """The gradient of a worker's loss."""
    return CURVATURE * (parameters - place(worker))


def downhill(worker, batch_size):
    away = worker.replica.parameters - place(worker.setup.worker)
    return float((CURVATURE * away.square()).sum()) / 2, slope(worker.setup.worker, worker.replica.parameters)


def even_cost(worker, batch_size):
    """Seconds of a batch."""
    return 0.01 + 0.001 * batch_size


def noting(starts, gradients):
    """As `gradients`; `starts` gets the parameters with which each worker begins each iteration."""

    def noted(worker, batch_size):
        starts.setdefault(worker.iteration, {})[worker.setup.worker] = worker.replica.parameters.clone()
        return gradients(worker, batch_size)

    return noted


def stacked(start):
    """The parameters of all workers, in order [workers, 6]."""
    return torch.stack([start[worker] for worker in sorted(start)])


@pytest.mark.parametrize(
    "system",
    [
        {"name": "baseline"},
        {"name": "hop", "synchronization": {"backup_workers": 0, "staleness": 0}},
        {"name": "ring_allreduce"},
        {"name": "power_sgd"},
        {"name": "parameter_server"},
        {"name": "parameter_server", "topology": {"kind": "parameter_server", "hosts": [0, 1]}},
        {"name": "gaia", "exchange": {"threshold": 0}},
        {"name": "local_sgd", "exchange": {"period": 1}},
        {"name": "local_sgd", "exchange": {"period": 1, "route": "ring"}},
        {"name": "sparta", "exchange": {"part": 1}},
        {
            "name": "dlion",
            "batching": "fixed",
            "exchange": {"n_min": 100},
            "synchronization": "synchronous",
            "knowledge_transfer": "none",
        },
    ],
    ids=str,
)
def test_synchronous_systems_equal_one_worker_with_all_data(system):
    def noisy(worker, batch_size):
        loss, gradient = downhill(worker, batch_size)
        return loss, gradient + noise(worker.setup.worker, worker.iteration)

    workers, starts = team(system, 4, iterations=30), {}
    run(workers, noting(starts, noisy), delays=random_delays(1, unequal=True), servers=servers_of(system, 4))
    x = torch.zeros(6)
    for iteration in range(30):
        torch.testing.assert_close(stacked(starts[iteration]), x.expand(4, 6), atol=1e-5, rtol=1e-5)
        x = x - RATE * sum(slope(worker, x) + noise(worker, iteration) for worker in range(4)) / 4
    for worker in workers:
        torch.testing.assert_close(worker.replica.parameters, x, atol=1e-5, rtol=1e-5)


def mixing_matrix(count):
    """W of a ring."""
    w = np.zeros((count, count))
    for worker, weights in enumerate(mixing_weights(compose(SystemSpec(name="dpsgd")).topology, count, seed=0)):
        for peer, weight in weights.items():
            w[worker, peer] = weight
        w[worker, worker] = 1 - sum(weights.values())
    return w


def no_slope(worker, batch_size):
    return 1.0, torch.zeros(6)


@pytest.mark.parametrize("begin", ["at the slowest", "anywhere"])
def test_mixing_contracts_as_the_second_eigenvalue_predicts_and_keeps_the_mean(begin):
    count, starts = 6, {}
    values, vectors = np.linalg.eigh(mixing_matrix(count))
    second = sorted(abs(values))[-2]
    slowest = vectors[:, np.argmin(abs(values - second))]
    workers = team({"name": "dpsgd"}, count, iterations=15)
    for index, worker in enumerate(workers):
        worker.replica.parameters.fill_(3 + float(slowest[index]))
        if begin == "anywhere":
            worker.replica.parameters.copy_(noise(index, 0))
    run(workers, noting(starts, no_slope), delays=random_delays(2, unequal=True))
    found = torch.stack([stacked(starts[iteration]) for iteration in range(15)])
    mean = found[0].mean(dim=0)
    torch.testing.assert_close(found.mean(dim=1), mean.expand(15, 6))
    apart = (found - mean).norm(dim=(1, 2))
    bound = apart[0] * second ** torch.arange(15.0)
    assert (apart <= bound * 1.0001 + 1e-6).all()
    if begin == "at the slowest":
        torch.testing.assert_close(apart, bound.float(), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("staleness", [1, 3])
@pytest.mark.parametrize("backup_workers", [0, 1])
def test_mixing_old_parameters_still_contracts(staleness, backup_workers):
    system = {
        "name": "hop",
        "exchange": {"kind": "parameters", "staleness": staleness},
        "synchronization": {"staleness": staleness, "backup_workers": backup_workers, "max_gap": 4},
        "topology": "ring",
    }
    workers = team(system, 6)
    begin = torch.stack([noise(index, 0) for index in range(6)])
    for worker, parameters in zip(workers, begin, strict=True):
        worker.replica.parameters.copy_(parameters)
    low, high = begin.min(dim=0).values, begin.max(dim=0).values

    def within(worker, batch_size):
        assert ((worker.replica.parameters >= low - 1e-5) & (worker.replica.parameters <= high + 1e-5)).all()
        return no_slope(worker, batch_size)

    run(workers, within, delays=random_delays(3), most=6000)
    assert min(worker.iteration for worker in workers) > 60
    end = torch.stack([worker.replica.parameters for worker in workers])
    assert float((end - end.mean(dim=0)).norm() / (begin - begin.mean(dim=0)).norm()) < 1e-3


def test_each_exchange_of_local_sgd_is_the_mean_of_all_parameters():
    starts = {}
    workers = team({"name": "local_sgd", "exchange": {"period": 3}}, 4, iterations=13)
    run(workers, noting(starts, downhill), delays=random_delays(4, unequal=True))
    for iteration in range(1, 13):
        before = starts[iteration - 1]
        ends = torch.stack([before[worker] - RATE * slope(worker, before[worker]) for worker in range(4)])
        found = stacked(starts[iteration])
        if iteration % 3:
            torch.testing.assert_close(found, ends)
        else:
            torch.testing.assert_close(found, ends.mean(dim=0).expand(4, 6))
            assert all(torch.equal(found[0], one) for one in found)


def test_diloco_takes_the_same_outer_nesterov_steps_on_all_workers():
    starts = {}
    system = {"name": "diloco", "exchange": {"period": 4, "outer_learning_rate": 0.7, "outer_momentum": 0.9}}
    workers = team(system, 4, iterations=12)
    run(workers, noting(starts, downhill), delays=random_delays(5, unequal=True))
    outer, velocity = torch.zeros(6), torch.zeros(6)
    for _ in range(3):
        ends = []
        for worker in range(4):
            x = outer
            for _ in range(4):
                x = x - RATE * slope(worker, x)
            ends.append(x)
        pseudo_gradient = outer - sum(ends) / 4
        velocity = 0.9 * velocity + pseudo_gradient
        outer = outer - 0.7 * (pseudo_gradient + 0.9 * velocity)
    torch.testing.assert_close(workers[0].replica.parameters, outer)
    for worker in workers:
        assert torch.equal(worker.replica.parameters, workers[0].replica.parameters)


ASYNCHRONOUS = {"synchronization": "asynchronous"}
STALE = {"synchronization": {"kind": "bounded_staleness", "staleness": 3}}
LOSSLESS = [
    {"name": "baseline", **ASYNCHRONOUS},
    {"name": "hop", "synchronization": {"backup_workers": 1, "staleness": 2}},
    {"name": "ako"},
    {"name": "ako", "exchange": {"partitions": [1, 3, 4, 6]}},
    {"name": "gaia"},
    {"name": "gaia", "exchange": {"threshold": 0.3}, **STALE},
    {"name": "gaia", "exchange": {"threshold": 0.3, "barrier": "selective"}, **ASYNCHRONOUS},
    {"name": "baseline", "exchange": {"kind": "max_n", "residual": "accumulate", "n": 30}, **STALE},
    {"name": "baseline", "exchange": {"kind": "max_n", "residual": "accumulate"}, **ASYNCHRONOUS},
    {"name": "baseline", "exchange": {"kind": "top_k", "density": 0.3}, **STALE},
    {"name": "baseline", "exchange": {"kind": "adaptive_top_k", "density": 0.2, "most": 0.5}, **STALE},
    {"name": "baseline", "exchange": {"kind": "random_k", "density": 0.3}, **ASYNCHRONOUS},
]


@pytest.mark.parametrize("system", LOSSLESS, ids=str)
def test_all_gradients_are_applied_once_by_all_workers_in_the_end(system):
    """On links that carry one or two partitions while a gradient is computed."""
    total = torch.zeros(6)

    def ceasing(worker, batch_size):
        """40 gradients; then zeros, with which all that was kept back gets out."""
        loss, gradient = downhill(worker, batch_size)
        if worker.iteration >= 40:
            let_go(worker.choices.exchange)
            return loss, torch.zeros(6)
        total.add_(gradient)
        return loss, gradient

    workers = team(system, 4)
    run(workers, ceasing, changing_cost, bandwidth=12.0, delays=random_delays(6, unequal=True), most=6000)
    assert min(worker.iteration for worker in workers) > 60
    for worker in workers:
        torch.testing.assert_close(worker.replica.parameters, -RATE * total / 4, atol=1e-3, rtol=1e-4)


def changing_cost(worker, batch_size):
    """Seconds of a batch: other ones every seven iterations."""
    return (1.0, 4.0, 2.0)[worker.iteration // 7 % 3]


@pytest.mark.parametrize(("partitions", "longest"), [(1, 1), (4, 4), (6, 6), (None, 7)])
def test_each_entry_arrives_at_least_every_p_iterations_also_while_p_changes(partitions, longest):
    """By its links' bandwidth p is between 1 and 4; between two cycles of 4 an entry waits for 7 at most."""
    workers = team({"name": "ako", "exchange": {"partitions": partitions}}, 4, iterations=60)
    tags = {}
    for worker in workers:
        worker.handle = noting_arrivals(worker, tags)
    run(workers, downhill, changing_cost, bandwidth=6.0, delays=random_delays(7, unequal=True))
    lengths = set()
    for of_pair in tags.values():
        for entry in range(6):
            came = sorted(tag for tag, begin, end in of_pair if begin <= entry < end)
            gaps = [b - a for a, b in pairwise([-1, *came, 60]) if b - a > 0]
            assert len(set(came)) == len(came)
            assert max(gaps) <= longest
            lengths |= set(gaps[1:-1])
    assert lengths == {partitions} if partitions else len(lengths) > 2


def noting_arrivals(worker, tags):
    """Its `handle`, which adds (iteration, first entry, end) of each contribution to `tags` of the pair."""
    handle = worker.handle

    def noting(event, now):
        if isinstance(event, MessageArrived) and isinstance(event.message.body, Contribution):
            body = event.message.body
            of_pair = tags.setdefault((event.message.sender, worker.setup.worker), [])
            of_pair.append((body.iteration, body.offset, body.offset + len(event.message.tensors[0])))
        return handle(event, now)

    return noting


@pytest.mark.parametrize("threshold", [0.05, 0.5])
def test_replicas_of_gaia_differ_by_residuals_below_the_threshold(threshold):
    starts = {}
    workers = team({"name": "gaia", "exchange": {"threshold": threshold}}, 4, iterations=40)
    run(workers, noting(starts, downhill), delays=random_delays(8, unequal=True))
    kept = [RATE / 4 * flushed(worker.choices.exchange)[(index + 1) % 4] for index, worker in enumerate(workers)]
    for index, worker in enumerate(workers):
        for peer, other in enumerate(workers):
            apart = worker.replica.parameters - other.replica.parameters
            torch.testing.assert_close(apart, kept[peer] - kept[index], atol=1e-5, rtol=1e-4)
        last = starts[39][index]
        own_step = last - RATE / 4 * slope(index, last)
        assert (kept[index].abs() <= threshold / math.sqrt(40) * own_step.abs() + 1e-6).all()


def test_the_threshold_of_gaia_bounds_the_age_of_residuals():
    """Of gradients that stay as they are, the update outgrows threshold / sqrt(t) of the weight ever sooner."""
    own = setup(variables=(20,), learning_rate=RATE)
    own.replica.parameters.fill_(10.0)
    one = SignificanceExchange(SignificanceExchange.Parameters(threshold=0.1), own)
    gradient, step = torch.zeros(20), RATE / 3
    gradient[:4] = torch.tensor([0.1, 0.2, 0.5, 4.0])
    sent, ages = torch.full((4,), -1.0), []
    for iteration in range(4000):
        own = LocalGradient(iteration, 32, gradient, seconds=1.0, factor=1 / 3, time=0.0)
        indices, _ = one.outgoing(own).messages[0][1].tensors
        sent[indices.long()] = float(iteration)
        ages.append(iteration - sent)
        assert (ages[-1] <= 0.1 / math.sqrt(iteration + 1) * 10 / (step * gradient[:4])).all()
    longest = torch.stack(ages).view(4, 1000, 4).amax(dim=1)
    assert (longest[1:] <= longest[:-1]).all()
    assert longest[0, 0] > 30
    assert longest[-1].tolist() == [5, 2, 1, 0]


LEARNING = [
    *LOSSLESS,
    {"name": "dlion", "knowledge_transfer": {"period": 20}},
    {"name": "dlion", "exchange": {"n": 40}, "knowledge_transfer": {"period": 20}},
    {"name": "dlion_sparse", "exchange": {"density": 0.3}},
    {"name": "dpsgd"},
    {"name": "hop", "exchange": {"kind": "parameters", "staleness": 3}, "synchronization": {"staleness": 3}},
    {"name": "local_sgd", "exchange": {"period": 5}},
    {"name": "diloco", "exchange": {"period": 5}},
    {"name": "diloco", "exchange": {"period": 5, "route": "ring"}},
    {"name": "diloco", "exchange": {"period": 5, "precision": "fp16"}},
    {"name": "local_sgd", "exchange": {"period": 5, "route": "ring", "precision": "bf16"}},
    {"name": "parameter_server", "exchange": {"asynchronous": True}},
    {"name": "baseline", "exchange": {"kind": "dgc", "density": 0.3, "warmup": [], "momentum": 0.5}},
    {"name": "baseline", "exchange": {"kind": "dgc", "density": 0.3, "warmup": [], "momentum": 0.5}, **STALE},
    {"name": "baseline", "exchange": {"kind": "top_k", "density": 0.2}},
    {"name": "baseline", "exchange": {"kind": "adaptive_top_k", "density": 0.1, "most": 0.5}},
    {"name": "baseline", "exchange": {"kind": "random_k", "density": 0.2}},
]


@pytest.mark.parametrize("system", LEARNING, ids=str)
def test_all_workers_converge_to_the_minimum_of_all_data(system):
    """And stay there. A worker that learns from its own data alone ends at a distance of 12 or more."""
    workers, found = team(system, 4, learning_rate=0.03), []

    def watched(worker, batch_size):
        if worker.iteration > 150:
            found.append(worker.replica.parameters.clone())
        return downhill(worker, batch_size)

    run(workers, watched, even_cost, delays=random_delays(9), servers=servers_of(system, 4), most=8000)
    minimum = sum(place(worker) for worker in range(4)) / 4
    assert min(float((place(worker) - minimum).norm()) for worker in range(4)) > 12
    assert len(found) > 100
    assert max(float((each - minimum).norm()) for each in found) < 3
