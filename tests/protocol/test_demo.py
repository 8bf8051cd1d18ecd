"""DeMo: the transform against SciPy's, what is selected, and the steps of its definition."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.fft import dctn, idctn

from dlion_sim.learning.flat import Layout
from dlion_sim.protocol.exchange.demo import tiles_of
from tests.protocol.joined import noise, noisy, run, team, trained

RATE = 0.1
SHAPES = st.lists(
    st.one_of(
        st.tuples(st.integers(1, 24)),
        st.tuples(st.integers(1, 12), st.integers(1, 12)),
        st.tuples(st.integers(1, 6), st.integers(1, 4), st.integers(1, 3), st.integers(1, 3)),
    ),
    min_size=1,
    max_size=4,
)


def tiles_of_one(values, shape, tile):
    """The tiles [p, q] of a variable, row by row."""
    matrix = values.reshape(shape[0] if len(shape) > 1 else 1, -1)
    p, q = (max(d for d in range(1, min(n, tile) + 1) if n % d == 0) for n in matrix.shape)
    return [matrix[i : i + p, j : j + q] for i in range(0, matrix.shape[0], p) for j in range(0, matrix.shape[1], q)]


def laid_out(shapes, seed):
    layout = Layout(tuple(f"v{i}" for i in range(len(shapes))), tuple(shapes))
    return layout, torch.randn(layout.size, generator=torch.Generator().manual_seed(seed))


def cut(values, layout, tile):
    """The tiles of all variables, as they are ordered: by columns, rows, and variable."""
    variables = np.split(np.asarray(values, float), np.cumsum(layout.sizes)[:-1])
    found = [each for of, shape in zip(variables, layout.shapes, strict=True) for each in tiles_of_one(of, shape, tile)]
    return sorted(found, key=lambda each: each.shape[::-1])


@given(shapes=SHAPES, tile=st.integers(1, 8), seed=st.integers(0, 9))
def test_each_tile_is_transformed_as_by_scipy_and_back(shapes, tile, seed):
    layout, values = laid_out(shapes, seed)
    tiles = tiles_of(layout, tile, values.device)
    coefficients = tiles.dct(values)
    expected = [dctn(each, norm="ortho").ravel() for each in cut(values, layout, tile)]
    np.testing.assert_allclose(coefficients, np.concatenate(expected), atol=1e-5)
    torch.testing.assert_close(tiles.inverse_dct(coefficients), values, atol=1e-5, rtol=0)


@given(shapes=SHAPES, tile=st.integers(1, 8), count=st.integers(1, 5), seed=st.integers(0, 9))
def test_the_strongest_of_each_tile_are_selected(shapes, tile, count, seed):
    layout, coefficients = laid_out(shapes, seed)
    expected, begin = [], 0
    for size in (each.size for each in cut(coefficients, layout, tile)):
        order = np.argsort(-np.abs(coefficients[begin : begin + size].numpy()), kind="stable")[:count]
        expected += sorted(begin + order)
        begin += size
    indices = tiles_of(layout, tile, coefficients.device).strongest(coefficients, count)
    assert indices.dtype == torch.int32
    assert indices.tolist() == expected


@given(count=st.integers(1, 4), entries=st.integers(1, 3), decay=st.sampled_from([0.0, 0.9]), seed=st.integers(0, 5))
def test_it_does_what_the_definition_says(count, entries, decay, seed):
    exchange = {"decay": decay, "entries": entries, "tile": 4, "scale": 0.5}
    found = trained({"name": "demo", "exchange": exchange}, count, 8, seed=seed)
    parts = (slice(0, 4), slice(4, 6))
    theta, momenta = np.zeros(6), np.zeros((count, 6))
    for iteration in range(8):
        merged = np.zeros(6)
        for worker in range(count):
            momenta[worker] = decay * momenta[worker] + noise(worker, iteration).numpy()
            for part in parts:
                q = dctn(momenta[worker][part], norm="ortho")
                q[np.argsort(-np.abs(q), kind="stable")[entries:]] = 0
                momenta[worker][part] -= idctn(q, norm="ortho")
                merged[part] += idctn(q, norm="ortho") / count
        theta -= RATE * 0.5 * np.sign(merged)
    for parameters in found:
        np.testing.assert_allclose(parameters, theta, atol=1e-5)


def test_what_is_not_sent_stays_in_the_momentum():
    """Without decay, what was sent and what remains are together the sum of all gradients."""
    (worker,) = team({"name": "demo", "exchange": {"decay": 0.0, "entries": 1, "tile": 4}}, 1, iterations=20)
    exchange, sent = worker.choices.exchange, torch.zeros(6)
    exchange.parameters = exchange.parameters.model_copy(update={"decay": 1.0})
    outgoing = exchange.outgoing

    def noted(own):
        found = outgoing(own)
        found.own.add_to(sent, 1.0)
        return found

    exchange.outgoing = noted
    run([worker], noisy)
    total = sum(noise(0, iteration) for iteration in range(20))
    tiles = tiles_of(worker.replica.layout, 4, total.device)
    torch.testing.assert_close(tiles.inverse_dct(sent + exchange._momentum), total, atol=1e-4, rtol=0)
