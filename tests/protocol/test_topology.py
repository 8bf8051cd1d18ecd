"""Graphs of peers and their mixing weights."""

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from pydantic import TypeAdapter

from dlion_sim.errors import InputError
from dlion_sim.protocol.compose import compose
from dlion_sim.protocol.topology import mixing_weights, sides
from dlion_sim.scenario import SystemSpec
from dlion_sim.scenario.system import Topology

topology = TypeAdapter(Topology).validate_python


def matrix(spec, workers, seed=0):
    weights = np.zeros((workers, workers))
    for worker, mixing in enumerate(mixing_weights(topology(spec), workers, seed)):
        for peer, weight in mixing.items():
            weights[worker, peer] = weight
        weights[worker, worker] = 1 - sum(mixing.values())
    return weights


kinds = st.one_of(
    st.sampled_from(["all_to_all", "ring", "bipartite", "exponential"]),
    st.fixed_dictionaries(
        {"kind": st.just("small_world"), "neighbours": st.integers(2, 4), "rewiring": st.floats(0, 1)}
    ),
    st.fixed_dictionaries({"kind": st.just("regular"), "degree": st.sampled_from([2, 4])}),
)


@given(kinds, st.integers(5, 30), st.integers(0, 5))
def test_weights_are_symmetric_doubly_stochastic_and_mix_everything(spec, workers, seed):
    try:
        weights = matrix(spec, workers, seed)
    except InputError:
        reject()  # a random regular graph may fall apart
    assert (weights >= 0).all()
    assert np.array_equal(weights, weights.T)
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    second = np.sort(np.abs(np.linalg.eigvalsh(weights)))[-2]
    assert second < 1 - 1e-6, "repeated mixing reaches the mean"


@pytest.mark.parametrize(
    ("spec", "workers", "peers"),
    [
        ("all_to_all", 4, [1, 2, 3]),
        ("ring", 6, [1, 5]),
        ("ring", 2, [1]),
        ("bipartite", 5, [1, 3]),
        ("exponential", 8, [1, 2, 4, 6, 7]),
        ("torus", 12, [1, 3, 4, 8]),
        ({"kind": "edges", "edges": [[0, 2], [1, 2]]}, 3, [2]),
        ("all_to_all", 1, []),
        ({"kind": "parameter_server", "hosts": [0, 2]}, 3, [3, 4]),
    ],
)
def test_the_first_workers_peers(spec, workers, peers):
    assert list(mixing_weights(topology(spec), workers, 0)[0]) == peers


def test_random_graphs_follow_the_seed():
    spec = {"kind": "regular", "degree": 4}
    assert (matrix(spec, 20, seed=1) == matrix(spec, 20, seed=1)).all()
    assert (matrix(spec, 20, seed=1) != matrix(spec, 20, seed=2)).any()
    assert ((matrix(spec, 20) > 0).sum(axis=1) == 5).all()


@pytest.mark.parametrize(
    ("spec", "workers", "path", "words"),
    [
        ({"kind": "edges", "edges": [[0, 1]]}, 3, "system.topology", "not connected"),
        ({"kind": "edges", "edges": [[0, 1], [1, 3]]}, 3, "system.topology.edges.1", "no two workers"),
        ({"kind": "regular", "degree": 3}, 5, "system.topology.degree", "cannot have 3"),
        ({"kind": "small_world", "neighbours": 6}, 6, "system.topology.neighbours", "cannot have 6"),
        ("torus", 7, "system.topology", "no torus"),
    ],
)
def test_impossible_graphs_are_refused(spec, workers, path, words):
    with pytest.raises(InputError, match=words) as fault:
        mixing_weights(topology(spec), workers, 0)
    assert fault.value.path == path


@pytest.mark.parametrize(
    ("system", "path"),
    [
        ({"name": "dlion", "topology": "ring"}, "system.batching"),
        ({"name": "baseline", "topology": "ring", "knowledge_transfer": "direct"}, "system.knowledge_transfer"),
    ],
)
def test_choices_that_need_everyone_are_refused_on_graphs(system, path):
    with pytest.raises(InputError, match="all others") as fault:
        compose(SystemSpec.model_validate(system))
    assert fault.value.path == path


@pytest.mark.parametrize(
    ("spec", "workers", "expected"),
    [
        ("ring", 6, [0, 1, 0, 1, 0, 1]),
        ("bipartite", 5, [0, 1, 0, 1, 0]),
        ("torus", 16, [0, 1, 0, 1, 1, 0, 1, 0] * 2),
        ({"kind": "edges", "edges": [[0, 3], [3, 1], [1, 2]]}, 4, [0, 0, 1, 1]),
        ("all_to_all", 2, [0, 1]),
        ("all_to_all", 1, [0]),
    ],
)
def test_sides_of_a_bipartite_graph(spec, workers, expected):
    assert sides(topology(spec), workers, 0) == expected


@pytest.mark.parametrize(("spec", "workers"), [("ring", 5), ("all_to_all", 3), ("exponential", 8), ("torus", 9)])
def test_pairs_on_graphs_without_two_sides_are_refused_with_the_reason(spec, workers):
    with pytest.raises(InputError, match=r"odd cycle.*swap their parameters.*allowed: a bipartite graph") as refused:
        sides(topology(spec), workers, 0)
    assert refused.value.path == "system.topology"
