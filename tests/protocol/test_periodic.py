"""Local SGD and DiLoCo: when they exchange, all to all or by a ring, in single or half precision."""

import numpy as np
import pytest
import torch

from dlion_sim.errors import InputError
from dlion_sim.protocol.compose import compose
from dlion_sim.protocol.events import GradientReady, MessageArrived, Started
from dlion_sim.protocol.messages import Message, Mixed
from dlion_sim.scenario import SystemSpec
from tests.protocol.joined import noise, random_delays, run, sent_by, setup, team, workers_of

HALVES = {"fp16": torch.float16, "bf16": torch.bfloat16}
DILOCO = {"period": 3, "outer_learning_rate": 0.5, "outer_momentum": 0.8}
EXCHANGES = [("local_sgd", {"period": 3}), ("diloco", DILOCO)]
P = 6


def trained(name, exchange, count=3, iterations=9, *, start=0.0, scale=1.0, delays=lambda participant: 0.0):
    """The parameters of so many workers, and the messages of each."""
    system = {"name": name, "exchange": exchange}
    workers = team(system, count, iterations=iterations)
    sent = sent_by(workers)
    for worker in workers:
        worker.replica.parameters.fill_(start)
        worker.choices.exchange.take_over([each.fill_(start) for each in worker.choices.exchange.state()])
    run(
        workers,
        lambda worker, size: (1.0, scale * noise(worker.setup.worker, worker.iteration)),
        delays=delays,
    )
    assert all(worker.iteration == iterations for worker in workers)
    return [worker.replica.parameters for worker in workers], sent


def payload(messages):
    """Bytes on the wire but for headers."""
    for message in messages:
        assert len(message.encode()) == message.size
    return sum(message.size - len(message.header) for message in messages)


@pytest.mark.parametrize("count", [1, 2, 3, 6])
@pytest.mark.parametrize(("name", "exchange"), EXCHANGES, ids=["local_sgd", "diloco"])
def test_a_ring_equals_all_to_all(name, exchange, count):
    ring, _ = trained(name, {**exchange, "route": "ring"}, count, delays=random_delays(count, unequal=True))
    direct, _ = trained(name, exchange, count)
    torch.testing.assert_close(ring[0], direct[0])
    assert all(torch.equal(ring[0], each) for each in ring)


@pytest.mark.parametrize("count", [2, 3, 6])
@pytest.mark.parametrize(("precision", "entry"), [("fp32", 4), ("fp16", 2), ("bf16", 2)])
def test_bytes_follow_from_route_and_precision(precision, entry, count):
    periods = 3
    _, direct = trained("diloco", {**DILOCO, "precision": precision}, count)
    _, ring = trained("diloco", {**DILOCO, "precision": precision, "route": "ring"}, count)
    assert [payload(messages) for messages in direct] == [periods * (count - 1) * P * entry] * count
    assert [payload(messages) for messages in ring] == [periods * 2 * (count - 1) * P * entry // count] * count


@pytest.mark.parametrize("precision", HALVES)
@pytest.mark.parametrize(("name", "exchange"), EXCHANGES, ids=["local_sgd", "diloco"])
def test_half_precision_rounds_pseudo_gradients_alike_on_all_workers_and_sums_in_single(name, exchange, precision):
    found, sent = trained(name, {**exchange, "precision": precision}, iterations=3)
    moved = [0.1 * sum(noise(worker, each) for each in range(3)) for worker in range(3)]
    rounded = [each.to(HALVES[precision]) for each in moved]
    assert all(torch.equal(messages[0].tensors[0], each) for messages, each in zip(sent, rounded, strict=True))
    mean = sum(each.float() for each in rounded) / 3
    torch.testing.assert_close(found[0], -mean * (1 if name == "local_sgd" else 0.5 * 1.8), atol=1e-7, rtol=1e-6)
    assert all(torch.equal(found[0], each) for each in found), "the own pseudo-gradient counts as its peers get it"


@pytest.mark.parametrize("count", [3, 6])
@pytest.mark.parametrize("precision", HALVES)
@pytest.mark.parametrize("route", ["all_to_all", "ring"])
def test_half_precision_is_near_single_and_the_same_on_all_workers(route, precision, count):
    exact, _ = trained("diloco", DILOCO, count)
    found, _ = trained(
        "diloco", {**DILOCO, "route": route, "precision": precision}, count, delays=random_delays(1, unequal=True)
    )
    error = float((found[0] - exact[0]).norm() / exact[0].norm())
    assert 0 < error < {"fp16": 1e-3, "bf16": 1e-2}[precision]
    assert all(torch.equal(found[0], each) for each in found)


@pytest.mark.parametrize(("precision", "least", "most"), [("int8", 1e-4, 0.02), ("fp4", 1e-3, 0.4)])
def test_quantized_pseudo_gradients_are_the_same_on_all_workers(precision, least, most):
    exact, _ = trained("diloco", DILOCO, 4)
    found, sent = trained("diloco", {**DILOCO, "precision": precision}, 4, delays=random_delays(1, unequal=True))
    assert least < float((found[0] - exact[0]).norm() / exact[0].norm()) < most
    assert all(torch.equal(found[0], each) for each in found)
    assert [tensor.dtype for tensor in sent[0][0].tensors] == [torch.float32, torch.uint8]


@pytest.mark.parametrize("precision", ["int8", "fp4"])
def test_a_ring_passes_on_floats(precision):
    exchange = {"route": "ring", "precision": precision}
    with pytest.raises(InputError, match=f"a ring passes on sums, which {precision} does not"):
        compose(SystemSpec.model_validate({"name": "diloco", "exchange": exchange}))


@pytest.mark.parametrize("precision", HALVES)
@pytest.mark.parametrize("route", ["all_to_all", "ring"])
@pytest.mark.parametrize(("name", "exchange"), EXCHANGES, ids=["local_sgd", "diloco"])
def test_pseudo_gradients_far_below_the_rounding_of_the_parameters_are_not_lost(name, exchange, route, precision):
    """Of a parameter of 8, half precision sees no less than 0.004."""
    exact, _ = trained(name, exchange, start=8.0, scale=1e-3)
    found, _ = trained(name, {**exchange, "route": route, "precision": precision}, start=8.0, scale=1e-3)
    moves = exact[0] - 8.0
    assert 0 < float(moves.abs().max()) < 2e-3
    torch.testing.assert_close(found[0] - 8.0, moves, atol=1e-5, rtol=0.02)


@pytest.mark.parametrize("setting", ["route: ring", "precision: bf16"])
@pytest.mark.parametrize(
    "replaced",
    [
        {"synchronization": {"kind": "bounded_staleness", "staleness": 0}},
        {"synchronization": "asynchronous"},
        {"topology": "ring"},
    ],
    ids=str,
)
def test_rings_and_half_precision_need_lockstep(setting, replaced):
    exchange = dict([setting.split(": ")])
    with pytest.raises(InputError, match=setting) as error:
        compose(SystemSpec.model_validate({"name": "diloco", "exchange": exchange, **replaced}))
    assert error.value.path == "system.exchange"
    assert "precision: fp32" in str(error.value)
    compose(SystemSpec.model_validate({"name": "diloco", **replaced}))


def test_early_chunks_of_a_ring_are_kept():
    """A worker that is a period behind keeps what came of the next sum."""
    workers = team({"name": "local_sgd", "exchange": {"period": 1, "route": "ring", "precision": "fp16"}}, 4)
    ends = {}

    def noted(worker, batch_size):
        ends.setdefault(worker.iteration, []).append(worker.replica.parameters.numpy().copy())
        return 1.0, noise(worker.setup.worker, worker.iteration)

    run(workers, noted, delays=random_delays(3, unequal=True), most=3000)
    whole = [found for found in ends.values() if len(found) == 4]
    assert len(whole) > 20
    for found in whole:
        np.testing.assert_array_equal(found, np.tile(found[0], (4, 1)))


def test_an_outer_rate_of_one_without_momentum_is_local_sgd():
    exchange = {"period": 3, "outer_learning_rate": 1.0, "outer_momentum": 0.0}
    (found, *_), _ = trained("diloco", exchange, iterations=7)
    (expected, *_), _ = trained("local_sgd", {"period": 3}, iterations=7)
    torch.testing.assert_close(found, expected)


def test_parameters_that_come_late_count_in_the_next_exchange():
    system = {
        "name": "local_sgd",
        "exchange": {"period": 2},
        "synchronization": {"kind": "bounded_staleness", "staleness": 1},
    }
    (worker,) = workers_of(system, [setup(workers=3)])

    def arrives(sender, tag, value):
        worker.handle(MessageArrived(Message(sender, Mixed(tag, 32), (torch.full((6,), value),))), 0.0)

    def iterate(parameters):
        worker.handle(GradientReady(1.0, torch.zeros(6), 1.0), 0.0)
        assert worker.replica.parameters.tolist() == [parameters] * 6

    worker.handle(Started(), 0.0)
    iterate(0.0)
    arrives(1, 1, 8.0)
    iterate(4.0)  # with 1; 2 is late
    arrives(2, 1, 100.0)
    iterate(4.0)
    arrives(2, 3, 6.0)
    iterate(5.0)  # with the newest of 2; 1 is late
    arrives(1, 3, 7.0)
    iterate(5.0)
    arrives(2, 5, 0.0)
    iterate(4.0)
