"""A line through the times of batch sizes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlion_sim.calibration import fit
from dlion_sim.errors import InputError

SIZES = (8, 16, 32, 64, 128)


@given(st.floats(0, 1), st.floats(1e-7, 1))
def test_a_line_is_found_again(alpha: float, slope: float) -> None:
    found = fit({size: alpha + slope * size for size in SIZES})
    assert found.alpha == pytest.approx(alpha, rel=1e-6, abs=1e-6 * slope * SIZES[0])
    assert found.slope == pytest.approx(slope, rel=1e-6, abs=1e-9 * alpha)
    assert found.worst < 1e-6
    assert found.r2 == pytest.approx(1, abs=1e-4)


def test_the_error_of_a_fit() -> None:
    times = {size: 0.1 + 0.01 * size for size in SIZES}
    found = fit({**times, 32: 2 * times[32]})
    assert found.worst == pytest.approx(
        max(abs(found.seconds(size) / time - 1) for size, time in {**times, 32: 2 * times[32]}.items())
    )
    assert 0.1 < found.worst < 0.5
    assert 0 < found.r2 < 1


def test_short_times_count_as_much_as_long_ones() -> None:
    found = fit({1: 0.011, 2: 0.012, 1000: 1.3})  # the last is longer than the line through the others
    assert found.seconds(1) == pytest.approx(0.011, rel=0.05)


def test_no_part_of_it_is_negative() -> None:
    found = fit({10: 0.05, 20: 0.2, 30: 0.4})
    assert found.alpha == 0
    assert found.slope > 0


def test_times_that_do_not_grow_tell_nothing() -> None:
    with pytest.raises(InputError, match="batches of 32 samples take no longer than of 8"):
        fit({8: 0.02, 16: 0.015, 32: 0.01})


@given(st.sampled_from(SIZES), st.floats(0.95, 1.05))
def test_it_goes_through_the_size_that_matters(size: int, slower: float) -> None:
    times = {each: 0.1 + 0.001 * each for each in SIZES}
    times[size] *= slower
    found = fit(times, through=size)
    if found.alpha > 0:
        assert found.seconds(size) == pytest.approx(times[size], rel=1e-3)
