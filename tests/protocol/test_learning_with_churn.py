"""The properties that make systems learn, with churn."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dlion_sim.protocol.events import (
    GradientReady,
    PeerFound,
    PeerLost,
)
from dlion_sim.protocol.messages import Contribution
from dlion_sim.protocol.updates import Update
from tests.protocol.churn import P, World, noise
from tests.protocol.flushing import flushed
from tests.protocol.members import (
    messages,
    worker_of,
)

IN_STEP = [
    ({"name": "baseline"}, 1),
    ({"name": "baseline", "exchange": {"kind": "top_k", "density": 0.3}}, 1),
    ({"name": "baseline", "exchange": "dgc"}, 1),
    ({"name": "gaia", "exchange": {"threshold": 0}}, 1),
    ({"name": "hop", "synchronization": {"backup_workers": 0, "staleness": 0, "max_gap": 2}}, 1),
    ({"name": "parameter_server"}, 1),
    ({"name": "parameter_server", "topology": {"kind": "parameter_server", "hosts": [0, 1]}}, 1),
    ({"name": "local_sgd", "exchange": {"period": 3}}, 3),
    ({"name": "diloco", "exchange": {"period": 3}}, 3),
    ({"name": "diloco", "exchange": {"period": 3, "precision": "fp16"}}, 3),
    ({"name": "local_sgd", "exchange": {"period": 3, "precision": "bf16"}}, 3),
]
"""Systems whose workers all have the same parameters after every so many iterations."""


@settings(max_examples=40, deadline=None)
@given(
    system=st.sampled_from(IN_STEP),
    seed=st.integers(0, 2**16),
    comings=st.lists(st.tuples(st.integers(1, 3), st.floats(0, 6), st.floats(14, 20)), max_size=2),
    absent=st.sets(st.integers(1, 3), max_size=2),
    optimizer=st.sampled_from([{}, {"momentum": 0.9}, {"kind": "adam"}]),
)
def test_a_worker_that_rejoins_has_the_parameters_of_all_others_to_the_bit(system, seed, comings, absent, optimizer):
    """A returning worker reconnects after all its former messages have arrived."""
    kind, period = system
    world = World(
        kind,
        4,
        noise,
        seed=seed,
        iterations=15,
        absent=sorted(absent),
        on_loss="go_on",
        optimizer=optimizer,
        patient=True,
        delay=lambda random: random.uniform(0.1, 1.0),
    )
    for number in absent:
        world.happen(13, world.come, number)
    for number, goes, returns in comings:
        world.happen(goes, world.leave, number)
        world.happen(returns, world.come, number)
    world.run()
    for iteration in range(period, 16, period):
        first, *others = [log.ends[iteration] for log in world.logs if iteration in log.ends]
        assert all(torch.equal(first, each) for each in others)


@pytest.mark.parametrize(("period", "delay"), [(4, 0), (6, 1), (12, 5)])
@pytest.mark.parametrize("seed", range(4))
def test_a_worker_that_rejoins_streaming_diloco_takes_the_outer_steps_of_all_others(period, delay, seed):
    """It counts every pseudo-gradient once: in the state, or as it arrives. Sums may differ in their order."""
    system = {"name": "streaming_diloco", "exchange": {"period": period, "delay": delay, "precision": "fp32"}}
    keys = {"iterations": 40, "on_loss": "go_on", "patient": True, "delay": lambda random: random.uniform(0.1, 1.0)}
    world = World(system, 4, noise, seed=seed, **keys)
    world.happen(5, world.leave, 3)
    world.happen(15, world.come, 3)
    world.run()
    assert 12 < world.log(3).joined.iteration < 36
    first, *others = [worker.choices.exchange.common[0] for worker in world.present]
    assert len(others) == 3
    for other in others:
        torch.testing.assert_close(first, other, rtol=0, atol=1e-6)


def test_gradients_are_conserved_across_a_loss_and_a_reconnection():
    """Residuals are kept during churn."""
    for exchange in (
        "partitions",
        {"kind": "top_k", "density": 0.3},
        "significance",
        {"kind": "max_n", "residual": "accumulate"},
    ):
        worker = worker_of({"name": "baseline", "exchange": exchange, "synchronization": "asynchronous"})
        worker.choices.synchronization.waits_for = lambda peer, iteration: False
        total = torch.zeros(P)
        gradients = torch.randn(8, P, generator=torch.Generator().manual_seed(3))
        for number, gradient in enumerate(gradients):
            if number == 3:
                worker.handle(PeerLost(2), float(number))
            if number == 5:
                worker.handle(PeerFound(2), float(number))
            actions = worker.handle(GradientReady(1.0, gradient, 1.0), number + 0.5)
            for message in messages(actions, 1):
                if isinstance(message.body, Contribution):
                    Update.of(message).add_to(total, 1.0)
        kept = flushed(worker.choices.exchange)
        torch.testing.assert_close(total + kept[1], gradients.sum(dim=0), rtol=0, atol=1e-5)


def test_parameters_are_mixed_with_members_only_which_keeps_the_mean():
    """An edge to a joining worker has weight 0 at both ends, so that the weights stay doubly stochastic."""
    world = World(
        {"name": "dpsgd", "topology": "all_to_all"},
        4,
        lambda worker, size: (1.0, torch.zeros(P)),
        iterations=30,
        on_loss="go_on",
    )
    for number, worker in enumerate(world.present):
        worker.replica.write(0, torch.full((P,), float(number)))
    world.happen(6, world.leave, 3)
    world.happen(14, world.come, 3)
    world.run()
    ends = torch.stack([worker.replica.parameters for worker in world.present])
    assert float(ends.std(dim=0).max()) < 1e-5
    assert 0 <= float(ends.mean()) <= 3
    assert world.logs[-1].joined is not None
