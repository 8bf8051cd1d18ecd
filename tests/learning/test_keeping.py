"""What of a stream is kept."""

import numpy as np
import pytest
from scipy.stats import chisquare

from dlion_sim.learning import Newest, Reservoir


def in_parts(kept, samples, sizes):
    """Hand the samples over in parts, whose sizes repeat."""
    begin = 0
    while begin < samples:
        for size in sizes:
            kept.add(np.arange(begin, min(begin + size, samples)))
            begin = min(begin + size, samples)
    return kept.samples


@pytest.mark.parametrize("sizes", [[1], [3, 0, 11], [100]])
def test_a_window_has_the_newest(sizes):
    assert list(in_parts(Newest(20), 70, sizes)) == list(range(50, 70))
    assert list(in_parts(Newest(20), 15, sizes)) == list(range(15))
    assert list(in_parts(Newest(), 70, sizes)) == list(range(70))


@pytest.mark.parametrize("sizes", [[1], [3, 0, 11], [60]])
def test_a_reservoir_has_each_sample_with_equal_probability(sizes):
    rng = np.random.default_rng(0)
    counts = np.zeros(60)
    for _ in range(3000):
        samples = in_parts(Reservoir(12, rng), 60, sizes)
        assert len(set(samples)) == len(samples) == 12
        counts[samples] += 1
    assert counts.sum() == 3000 * 12
    assert chisquare(counts).pvalue > 0.01


def test_a_reservoir_does_not_depend_on_how_samples_come_in_parts():
    one, other = (in_parts(Reservoir(8, np.random.default_rng(1)), 50, sizes) for sizes in ([1], [7, 13]))
    assert list(one) == list(other)


def test_a_reservoir_that_is_not_full_has_all():
    assert list(in_parts(Reservoir(30, np.random.default_rng(0)), 25, [4])) == list(range(25))
