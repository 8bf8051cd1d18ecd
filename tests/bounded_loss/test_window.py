"""The congestion window, round by round."""

import math

import numpy as np
import pytest

from dlion_sim.bounded_loss import window
from dlion_sim.bounded_loss.window import GAIN

RECORD = np.dtype(window.FIELDS)


class Connection:
    """Sends a window a round, of which a part is marked or lost."""

    def __init__(self, initial=10.0):
        self.record = np.zeros(1, RECORD)[0]
        window.open_window(self.record, initial, 0.1, 0.2)
        self.count = self.sent = 0

    def round(self, part=0.0):
        """The window after a round, answered packet by packet."""
        packets = int(self.record["window"])
        self.sent += packets
        congested = round(part * packets)
        for number in range(packets):
            self.count += 1
            under_way = packets - number
            # Acknowledgements clock out what follows: the window stays in use.
            window.answered(self.record, 1, int(number < congested), max(under_way, packets), self.count, self.sent)
        return self.record["window"]


def test_slow_start_doubles_until_a_packet_is_marked():
    connection = Connection()
    assert [connection.round() for _ in range(4)] == [20, 40, 80, 160]
    connection.round(0.5)
    after = connection.record["window"]
    assert after == pytest.approx(160 * (1 - connection.record["alpha"] / 2), rel=0.01)
    assert connection.round() == pytest.approx(after + 1, abs=0.02)


def test_a_window_shrinks_by_half_of_alpha_once_a_round():
    """alpha <- (1 - g) alpha + g F; W <- W (1 - alpha / 2)."""
    connection = Connection(initial=100.0)
    connection.record["threshold"] = 50.0
    alpha, size = 1.0, 100.0
    for part in [0.5, 0.0, 0.0, 0.25, 1.0, 0.1, 0.0, 0.2]:
        packets = int(size)
        congested = round(part * packets)
        found = connection.round(part)
        alpha = (1 - GAIN) * alpha + GAIN * congested / packets
        grown = sum(1 / size for _ in range(packets - congested))
        size = (size + grown) * (1 - alpha / 2) if congested else size + grown
        assert connection.record["alpha"] == pytest.approx(alpha)
        assert found == pytest.approx(size, rel=0.01)
        size = found


def test_alpha_comes_to_the_part_that_is_marked():
    connection = Connection()
    for _ in range(100):
        connection.record["window"] = 1000.0
        connection.round(0.25)
    assert connection.record["alpha"] == pytest.approx(0.25, abs=0.01)


def test_a_window_that_is_not_used_does_not_grow():
    connection = Connection()
    for number in range(20):
        window.answered(connection.record, 1, 0, 1, number + 1, number + 1)
    assert connection.record["window"] == 10


def test_a_window_never_shrinks_to_nothing():
    connection = Connection(1.0)
    assert min(connection.record["window"], *(connection.round(1.0) for _ in range(30))) == window.LEAST_WINDOW


def test_without_congestion_control_nothing_changes_it():
    connection = Connection(math.inf)
    for number in range(20):
        window.answered(connection.record, 1, 1, 1, number + 1, number + 1)
    window.timed_out(connection.record)
    assert connection.record["window"] == math.inf


def test_timeouts_follow_round_trips_and_back_off():
    connection = Connection()
    assert window.timeout(connection.record) == pytest.approx(0.3)
    for _ in range(200):
        window.heard(connection.record, 0.05)
    assert window.timeout(connection.record) == pytest.approx(0.05 + 0.2), "the least"
    assert window.quiet(connection.record) == pytest.approx(0.05)
    window.timed_out(connection.record)
    assert connection.record["window"] == window.LEAST_WINDOW
    assert window.timeout(connection.record) == pytest.approx(0.5)
    for _ in range(50):
        window.timed_out(connection.record)
    assert window.timeout(connection.record) == 60
    window.heard(connection.record, 0.05)
    assert window.timeout(connection.record) == pytest.approx(0.25)
