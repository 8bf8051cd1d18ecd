"""Messages with bounded loss: the required part arrives, and nothing else is waited for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlion_sim.simulation.packets.network import Bounded
from tests.simulation.packets.networks import RATE, Star, bound, cut, times

FRAME, PAYLOAD = 1514, 1424


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(1, 120), min_size=1, max_size=4),
    st.sampled_from([0.0, 0.05, 0.3]),
    st.floats(0, 0.4),
    st.booleans(),
    st.booleans(),
    st.integers(0, 9),
)
def test_no_more_is_missing_than_the_bound_allows(counts, part, loss, protected, early, seed):
    star = Star(2, buffer=12 * FRAME, drop_above=4 * FRAME, mark_above=4 * FRAME, seed=seed)
    connection = star.connect(0, 1, latency=0.003, loss=loss, loss_back=loss, endpoint=Bounded())
    for count in counts:
        given = bound(count, part)
        message = star.network.send_cut(
            connection, cut(count, protected=protected), given, header=90, stops_early=early
        )
        told = star.network.run(star.network.now + 1000)
        assert [each.what for each in told] == ["delivered", "sent", "acknowledged"]
        pieces = star.network.pieces(message)
        missing = PAYLOAD * int((pieces.received == 0).sum())
        assert missing <= given.allowed[0]
        assert (pieces.received <= pieces.sent).all()
        assert np.isnan(pieces.arrived[pieces.received == 0]).all()
        assert (pieces.arrived[pieces.received == 1] <= times(told, "delivered")[message]).all()
        assert star.network.unsent(message) == PAYLOAD * int((pieces.sent == 0).sum())
        star.network.release(message)
    assert star.network._memory.used("packets") == star.network._memory["state"][0]["free"]


def test_without_loss_a_message_ends_when_enough_has_arrived():
    """Nine tenths of 1000 packets, without any slow start, and then an answer."""
    star = Star(2)
    connection = star.connect(0, 1, latency=0.001, endpoint=Bounded(initial_window=np.inf))
    message = star.network.send_cut(connection, cut(1000), bound(1000, 0.1), header=36)
    told = star.network.run()
    start = 100 / RATE
    assert times(told, "delivered")[message] == pytest.approx(start + 901 * FRAME / RATE + 0.001)
    assert times(told, "acknowledged")[message] == pytest.approx(start + 901 * FRAME / RATE + 0.002 + 128 / RATE)
    assert star.network.pieces(message).received.sum() == 900


def test_losses_within_the_bound_are_not_resent():
    star = Star(2, seed=1)
    connection = star.connect(0, 1, latency=0.001, loss=0.05, endpoint=Bounded())
    message = star.network.send_cut(connection, cut(1000), bound(1000, 0.1), header=0)
    star.network.run()
    assert star.network.resent(message) == 0
    assert star.network.pieces(message).received.sum() == 900


def test_a_connection_has_one_message_at_a_time():
    star = Star(2)
    connection = star.connect(0, 1, endpoint=Bounded())
    star.network.send_cut(connection, cut(3), bound(3, 0.0), header=0)
    with pytest.raises(ValueError, match="has a message under way"):
        star.network.send_cut(connection, cut(3), bound(3, 0.0), header=0)


def test_late_packets_of_a_message_do_not_count_for_the_next():
    """Two thirds suffice, and the rest of each is still on its way when the next one begins."""
    star = Star(2)
    connection = star.connect(0, 1, latency=0.01, endpoint=Bounded(initial_window=np.inf))
    for count in (60, 45, 30):
        message = star.network.send_cut(connection, cut(count), bound(count, 1 / 3), header=0)
        told = []
        while "acknowledged" not in {each.what for each in told}:
            told += star.network.step(1.0)[0]
        assert star.network.pieces(message).received.sum() == 2 * count / 3
    star.network.run()


def test_incast_with_a_bound_has_no_tail():
    """Thirty senders at once into a queue of thirty packets: timeouts make the reliable one's tail."""
    ends = {}
    for kind in ("reliable", "bounded"):
        star = Star(31, 100 * RATE, buffer=30 * FRAME, drop_above=20 * FRAME, mark_above=20 * FRAME)
        for sender in range(30):
            if kind == "reliable":
                star.network.send(star.connect(sender, 30, latency=1e-5), 40 * PAYLOAD)
            else:
                connection = star.connect(sender, 30, latency=1e-5, endpoint=Bounded(least_timeout=0.001))
                star.network.send_cut(connection, cut(40, protected=False), bound(40, 0.1), header=90)
        ends[kind] = max(times(star.network.run(), "delivered").values())
    assert ends["bounded"] < 0.1 * ends["reliable"]
