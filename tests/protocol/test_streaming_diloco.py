"""Streaming DiLoCo: torchft's fixtures, a short program of the definition, and what it has in common with DiLoCo."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dlion_sim.errors import InputError
from dlion_sim.learning.flat import Layout
from dlion_sim.protocol.exchange.streaming_diloco import fragments_of
from tests.protocol import joined
from tests.protocol.joined import noise, noisy, team

RATE = 0.1
FRAGMENTS = np.arange(4), np.arange(4, 6)
"""Entries of the two, one for each variable."""


def streaming(**parameters):
    return {"name": "streaming_diloco", "exchange": {"precision": "fp32", **parameters}}


def trained(system, count, iterations, *, seed=0, gradients=noisy):
    return np.stack(joined.trained(system, count, iterations, seed=seed, gradients=gradients))


@pytest.mark.parametrize(
    ("delay", "alpha", "first", "second"),
    [
        (0, 0.0, [1, -1, -3, -11, -13, -15, -17, -19, -21, -35], {3: -5, 5: -9, 6: -23, 9: -29, 11: -33, 12: -47}),
        (0, 0.5, {3: -8, 9: -24.5}, {}),
        (1, 0.0, {2: -3, 3: -7, 9: -27}, {6: -19}),
        (1, 0.5, {2: -3, 3: -6, 9: -21.5}, {}),
        (0, 1.0, [1, -1, -3, -5, -7, -9, -11, -13], [1, -1, -3, -5, -7, -9, -11, -13]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_it_has_the_values_of_torchft(precision, delay, alpha, first, second):
    """From 1 on, each inner step is of -2; outer rate 2 without momentum, a period of 6, two fragments."""
    system = streaming(
        period=6,
        fragments=2,
        delay=delay,
        alpha=alpha,
        outer_learning_rate=2.0,
        outer_momentum=0.0,
        precision=precision,
    )
    of_steps = [
        trained(system, 2, steps, gradients=lambda *_: (1.0, torch.full((6,), 20.0))) + 1 for steps in range(13)
    ]
    for fragment, values in ((0, first), (1, second)):
        for steps, value in values.items() if isinstance(values, dict) else enumerate(values):
            assert of_steps[steps][:, FRAGMENTS[fragment]] == pytest.approx(value, rel=1e-6), (fragment, steps)


@given(
    count=st.integers(1, 4),
    delay=st.integers(0, 2),
    alpha=st.sampled_from([0.0, 0.3, 1.0]),
    eager=st.booleans(),
    precision=st.sampled_from(["fp32", "fp16"]),
    seed=st.integers(0, 5),
)
def test_it_does_what_the_definition_says(count, delay, alpha, eager, precision, seed):
    theta, phi, momentum = np.zeros((count, 6)), np.zeros((count, 6)), np.zeros((count, 6))
    former = np.zeros((count, 6))
    delay = 0 if eager else delay
    for steps in range(1, 19):
        theta = theta - RATE * np.stack([noise(worker, steps - 1).numpy() for worker in range(count)])
        if (steps + delay) % 3 == 0:
            sent = phi - theta
        if steps % 3 == 0:
            entries = FRAGMENTS[(steps // 3 - 1) % 2]
            now = sent[:, entries]
            if eager:
                g = (now + former[:, entries].sum(axis=0) - former[:, entries]) / count
                former[:, entries] = now
            else:
                g = np.broadcast_to(now.mean(axis=0), now.shape)
            momentum[:, entries] = 0.9 * momentum[:, entries] + g
            phi[:, entries] -= 0.4 * (g + 0.9 * momentum[:, entries])
            theta[:, entries] = alpha * theta[:, entries] + (1 - alpha) * phi[:, entries]
    system = streaming(period=6, fragments=2, delay=delay, alpha=alpha, eager=eager, precision=precision)
    atol = 1e-5 if precision == "fp32" else 3e-3
    np.testing.assert_allclose(trained(system, count, 18, seed=seed), theta, atol=atol)


def test_with_one_fragment_and_no_delay_it_is_diloco_to_the_bit():
    outer = {"outer_learning_rate": 0.7, "outer_momentum": 0.9, "period": 3}
    ours = trained(streaming(fragments=1, delay=0, alpha=0.0, **outer), 3, 12, seed=1)
    theirs = trained({"name": "diloco", "exchange": outer}, 3, 12, seed=2)
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("precision", ["int8", "fp4"])
def test_quantized_pseudo_gradients_leave_all_with_the_same_parameters(precision):
    """With alpha 0, after an outer step: whatever is lost in rounding is lost on all."""
    found = trained(streaming(period=3, fragments=1, delay=0, alpha=0.0, precision=precision), 4, 9, seed=3)
    assert (found == found[0]).all()
    exact = trained(streaming(period=3, fragments=1, delay=0, alpha=0.0), 4, 9, seed=3)
    assert np.linalg.norm(found - exact) < (0.02 if precision == "int8" else 0.5) * np.linalg.norm(exact)


def test_layers_are_dealt_in_strides_or_in_a_row():
    layout = Layout(("a.weight", "a.bias", "b.weight", "c.weight", "d.weight"), ((2,), (1,), (1,), (1,), (1,)))
    strided, sequential = (fragments_of(layout, 2, order) for order in ("strided", "sequential"))
    assert [each.tolist() for each in strided] == [[0, 1, 2, 4], [3, 5]]
    assert [each.tolist() for each in sequential] == [[0, 1, 2, 3], [4, 5]]


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"period": 5}, r"2 fragments and a delay of 0 do not fit 5"),
        ({"period": 6, "delay": 3}, r"a delay of 3 do not fit 6"),
        ({"period": 6, "fragments": 3}, r"3 fragments of 2 layers; allowed: 1 to 2"),
    ],
)
def test_what_does_not_fit_is_refused(parameters, problem):
    with pytest.raises(InputError, match=problem):
        team(streaming(**{"delay": 0, **parameters}), 2)
