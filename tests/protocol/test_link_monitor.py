"""A worker's measurements of its links."""

import pytest

from dlion_sim.protocol.link_monitor import LinkMonitor


def monitor():
    """One that follows what is measured quickly."""
    made = LinkMonitor([1, 2])
    made.follow("measured", 0.5)
    return made


def links(bandwidth=100.0, compute_seconds=2.0):
    """Those of a worker whose link to peer 1 has carried so many bytes a second, until time 10."""
    made = monitor()
    made.queued(1, 1000, 10 - 1000 / bandwidth)
    made.sent(1, 10.0)
    made.timed(1, 1000, 1000 / bandwidth)
    made.computed(compute_seconds)
    return made


def test_the_budget_is_what_a_link_carries_while_a_gradient_is_computed():
    assert links().budget(1, 10.0) == 200
    assert links().budget(2, 10.0) == 0, "nothing is known of it"


def test_queued_bytes_are_subtracted_from_the_budget():
    made = links()
    made.queued(1, 200, 10.0)
    made.queued(1, 50, 11.0)
    assert made.budget(1, 11.0) == 200 - 250 + 100
    assert made.budget(1, 12.0) == 200 - 50
    assert made.budget(1, 20.0) == 200 - 50, "a late message is thought to be about to leave"
    made.sent(1, 12.5)
    made.timed(1, 200, 2.5)  # which counts for a tenth: on average 920 bytes in 9.25 s
    rate = 920 / 9.25
    assert made.budget(1, 12.6) == pytest.approx(2 * rate - 50 + rate * 0.1)


def test_bandwidths_and_times_are_averaged():
    made = links()
    made.queued(1, 3000, 10.0)
    made.sent(1, 20.0)
    made.timed(1, 3000, 10.0)
    made.computed(4.0)
    assert made.budget(1, 20.0) == 200 * 3
    assert made.carried([1]) == [200 * 3]
    assert made.carried([1, 2]) == [], "not all are known"


def test_short_messages_have_little_weight():
    made = links()
    made.queued(1, 1, 10.0)
    made.sent(1, 10.0)
    made.timed(1, 1, 0.0001)  # at 10,000 bytes a second
    assert made.budget(1, 10.0) == pytest.approx(200, rel=1e-5)
