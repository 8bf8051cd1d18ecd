"""Reduced lines, bands and intervals, compared with all their values."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlion_sim.report import thinning

VALUES = st.lists(st.one_of(st.integers(-5, 5).map(float), st.just(float("nan"))), min_size=1, max_size=200)


def extents(times, values, buckets, begin, span):
    """The least and the greatest value of each bucket that has some."""
    known = ~np.isnan(values)
    bucket = np.minimum((times[known] - begin) / span * buckets, buckets - 1).astype(int)
    return {place: (values[known][bucket == place].min(), values[known][bucket == place].max()) for place in {*bucket}}


@given(VALUES, st.integers(1, 12), st.randoms())
def test_a_line_keeps_its_ends_and_the_extremes_of_each_bucket(values, buckets, random):
    times = np.cumsum([random.choice([0.0, 0.5, 1.0, 3.0]) for _ in values])
    values = np.array(values)
    kept = thinning.line(times, values, buckets)
    known = np.flatnonzero(~np.isnan(values))
    if len(known) == 0:
        assert len(kept) == 0
        return
    assert (kept[0], kept[-1]) == (known[0], known[-1])
    assert np.all(np.diff(kept) > 0)
    assert len(kept) <= max(4 * buckets, 2 * buckets)
    # A line in steps through the kept points covers the same values in each bucket.
    begin, span = times[known[0]], max(times[known[-1]] - times[known[0]], 1e-300)
    drawn = values[kept][np.searchsorted(kept, known, side="right") - 1]
    if len(known) <= 2 * buckets:
        assert drawn.tolist() == values[known].tolist()
    else:
        all_known = extents(times[known], values[known], buckets, begin, span)
        left = extents(times[known], drawn, buckets, begin, span)
        assert left == all_known


def test_a_line_that_does_not_change_is_its_ends():
    assert thinning.line(np.arange(1000.0), np.full(1000, 3.0), 10).tolist() == [0, 999]


@settings(max_examples=30)
@given(st.lists(st.tuples(st.floats(0, 10), st.integers(0, 9)), min_size=1, max_size=100), st.integers(1, 20))
def test_a_band_has_the_mean_and_the_extremes_of_each_bucket(points, buckets):
    times, values = (np.array(each, dtype=float) for each in zip(*points, strict=True))
    band = thinning.band(times, values, 10.0, buckets)
    bucket = np.minimum(times / 10 * buckets, buckets - 1).astype(int)
    assert band.index.tolist() == pytest.approx([(place + 0.5) * 10 / buckets for place in sorted({*bucket})])
    for row, place in zip(band.itertuples(index=False), sorted({*bucket}), strict=True):
        own = values[bucket == place]
        assert row == pytest.approx((own.mean(), own.min(), own.max()))


def test_intervals_are_kept_or_joined_about_evenly():
    edges = np.arange(101.0)
    assert thinning.intervals(edges[:6], 5).tolist() == [0, 1, 2, 3, 4, 5]
    kept = thinning.intervals(edges, 7)
    assert (kept[0], kept[-1], len(kept)) == (0, 100, 8)
    assert np.ptp(np.diff(kept)) <= 1
