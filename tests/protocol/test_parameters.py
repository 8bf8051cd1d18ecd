"""Mixing of parameters: D-PSGD's rule, its mean, and Hop's weights for old parameters."""

import gc
import weakref

import numpy as np
import pytest
import torch
from pydantic import TypeAdapter

from dlion_sim.errors import InputError
from dlion_sim.protocol.compose import compose
from dlion_sim.protocol.exchange.parameters import ParameterExchange
from dlion_sim.protocol.messages import Contribution
from dlion_sim.protocol.topology import mixing_weights
from dlion_sim.protocol.updates import Incoming, LocalGradient, Update
from dlion_sim.scenario import SystemSpec
from dlion_sim.scenario.system import Topology
from tests.protocol.joined import noise, setup, trained


@pytest.mark.parametrize("kind", ["ring", "all_to_all", {"kind": "edges", "edges": [[0, 1], [1, 2], [2, 3], [1, 4]]}])
def test_dpsgd_is_the_papers_rule(kind):
    """x_{k+1} = W x_k - learning rate * g, with all x_k exchanged."""
    found = trained({"name": "dpsgd", "topology": kind}, 5, iterations=6)
    mixing = mixing_weights(TypeAdapter(Topology).validate_python(kind), 5, seed=0)
    w = np.zeros((5, 5))
    for worker, weights in enumerate(mixing):
        for peer, weight in weights.items():
            w[worker, peer] = weight
        w[worker, worker] = 1 - sum(weights.values())
    x = np.zeros((5, 6))
    for iteration in range(6):
        x = w @ x - 0.1 * np.stack([noise(worker, iteration).numpy() for worker in range(5)])
    np.testing.assert_allclose(torch.stack(found), x, atol=1e-5)


def mixed(staleness, tags, iteration=10, mixing=None):
    """The first entry of a worker at 0 after mixing with peers at 1, 2, ... whose parameters are of `tags`."""
    own = setup(workers=len(tags) + 1, mixing=mixing)
    one = ParameterExchange(ParameterExchange.Parameters(staleness=staleness), own)
    received = [
        Update(peer, Contribution(tag, 32), (torch.full((6,), float(peer)),)) for peer, tag in enumerate(tags, start=1)
    ]
    local = LocalGradient(iteration, 32, torch.zeros(6), 1.0, 1.0, 0.0)
    one.apply(Incoming(local.iteration, one.outgoing(local).own, received, lambda body: 1.0, one.setup.peers))
    return float(own.replica.parameters[0])


@pytest.mark.parametrize(
    ("staleness", "tags", "expected"),
    [
        (2, [10, 8], (3 * 0 + 3 * 1 + 1 * 2) / 7),  # Weights tag - (iteration - staleness) + 1: 3 of its own, 3 and 1.
        (2, [10, 7], (3 * 0 + 3 * 1) / 6),  # Too old parameters do not count.
        (0, [10, 9], 1 / 2),  # The weight of missing peers goes to the others.
    ],
)
def test_newer_parameters_weigh_more(staleness, tags, expected):
    assert mixed(staleness, tags) == pytest.approx(expected)


@pytest.mark.parametrize("staleness", [0, 2])
def test_parameters_that_no_later_iteration_mixes_are_not_kept(staleness):
    own = setup()
    one = ParameterExchange(ParameterExchange.Parameters(staleness=staleness), own)
    vector = torch.ones(6)
    one.apply(Incoming(10, None, [Update(1, Contribution(10, 32), (vector,))], lambda body: 1.0, own.peers))
    there = weakref.ref(vector)
    del vector
    gc.collect()
    assert (there() is not None) == (staleness > 0)


def test_parameters_are_sent_before_the_gradient_is_computed():
    own = setup()
    one = ParameterExchange(ParameterExchange.Parameters(), own)
    own.replica.parameters.fill_(3.0)
    messages = dict(one.began(4, 32))
    assert list(messages) == [1, 2]
    assert messages[1].tensors[0].tolist() == [3.0] * 6
    assert one.outgoing(LocalGradient(4, 32, torch.ones(6), 1.0, 1.0, 0.0)).messages == []


def system(synchronization, staleness):
    return SystemSpec.model_validate(
        {
            "name": "dpsgd",
            "synchronization": synchronization,
            "exchange": {"kind": "parameters", "staleness": staleness},
        }
    )


STALE = [
    ("synchronous", 0),
    ({"kind": "bounded_staleness", "staleness": 3}, 3),
    ({"kind": "hop", "staleness": 2}, 2),
    ("asynchronous", 0),
    ("asynchronous", 7),
]


@pytest.mark.parametrize(("synchronization", "staleness"), STALE, ids=str)
def test_the_staleness_is_that_of_the_synchronization_if_it_has_a_bound(synchronization, staleness):
    assert compose(system(synchronization, staleness)).spec.exchange.parameters == {"staleness": staleness}


@pytest.mark.parametrize(
    ("synchronization", "staleness", "told"),
    [
        (
            "synchronous",
            2,
            "parameters may be 2 iterations old, but the synchronization 'synchronous' lets a peer be 0",
        ),
        ({"kind": "bounded_staleness", "staleness": 3}, 0, "'bounded_staleness' lets a peer be 3 behind; allowed: 3"),
        ({"kind": "hop", "staleness": 2}, 5, "'hop' lets a peer be 2 behind; allowed: 2"),
    ],
)
def test_a_staleness_that_contradicts_the_synchronization_is_refused(synchronization, staleness, told):
    with pytest.raises(InputError) as refusal:
        compose(system(synchronization, staleness))
    assert refusal.value.path == "system.exchange.staleness"
    assert told in str(refusal.value)
