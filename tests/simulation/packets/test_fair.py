"""A queue for each connection at every port, served in turn: sharing, waits, drops."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlion_sim.simulation.packets.network import PacketNetwork, Port, Raw, Reliable
from tests.simulation.packets.networks import RATE, Star, times

FRAME, SEGMENT = 1514, 1448
SHORT = Raw(payload=60)
"""Frames of 126 bytes."""


def bottleneck(senders, *, fair=True, **queue):
    """Hosts that send as fast as anything over one port, which is the last."""
    return PacketNetwork([*[Port(math.inf)] * senders, Port(RATE, **queue)], fair=fair)


def waits_of(network):
    """The bytes that wait, by queue and connection."""
    memory = network._memory
    packets, waits = memory["packets"], {}
    for queue, first in enumerate(memory["queues"]["first"][: memory.used("queues")].tolist()):
        while first != -1:
            of = queue, int(packets["connection"][first])
            waits[of] = waits.get(of, 0) + int(packets["size"][first])
            first = int(packets["next"][first])
    return waits


lengths = st.lists(st.integers(1, 40), min_size=2, max_size=5)


@settings(max_examples=40, deadline=None)
@given(lengths, st.lists(st.integers(60, SEGMENT), min_size=5, max_size=5))
def test_the_bytes_sent_of_any_two_connections_differ_by_at_most_two_packets(lengths, payloads):
    """Golestani (INFOCOM 1994): as long as both have something to send. Bytes, whatever the packets' sizes."""
    network = bottleneck(len(lengths), fair=True)
    sizes = [66 + payload for payload in payloads[: len(lengths)]]
    packets = {}
    for host, (length, size) in enumerate(zip(lengths, sizes, strict=True)):
        connection = network.connect([(host, len(lengths))], endpoint=Raw(payload=size - 66))
        for _ in range(length):
            packets[network.send(connection, size - 66)] = host
    order = [packets[message] for message in times(network.run(), "delivered")]
    had, left = np.zeros(len(lengths)), np.array(lengths)
    for host in order:
        had[host] += sizes[host]
        left[host] -= 1
        busy = had[(left > 0) & (np.array(sizes) > 127)]
        if len(busy) > 1:
            assert np.ptp(busy) <= 2 * max(sizes)
    assert not left.any()


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 60_000), st.floats(0, 0.02)), min_size=1, max_size=20),
    st.integers(1, 12),
    st.floats(0, 0.02),
)
def test_each_connection_has_its_own_buffer_and_all_messages_arrive(messages, buffer, loss):
    network = PacketNetwork([Port(RATE)] * 4 + [Port(RATE / 4, buffer=buffer * FRAME)] * 4, fair=True, seed=1)
    connections, sent, now = {}, set(), 0.0
    told = []
    for sender, size, pause in messages:
        now += pause
        told += network.run(now)
        ways = [[(sender, 4 + (sender + 1) % 4)], [((sender + 1) % 4, 4 + sender)]]
        if sender not in connections:
            endpoint = Reliable(least_timeout=0.01)
            connections[sender] = network.connect(*ways, latency=0.001, loss=loss, endpoint=endpoint)
        sent.add(network.send(connections[sender], size))
        assert all(waits <= buffer * FRAME for waits in waits_of(network).values())
    told += network.run()
    assert set(times(told, "acknowledged")) == sent
    state = network._memory["state"][0]
    assert state["made"] == state["ended"]
    assert (network.counters()["queued"] == 0).all()


@pytest.mark.parametrize("fair", [False, True])
def test_packets_of_the_connection_with_the_longest_queue_are_dropped(fair):
    """A hundred packets of one are before one of another, and there is room for ten."""
    network = bottleneck(2, fair=fair, buffer=10 * FRAME)
    greedy, modest = (network.connect([(host, 2)], endpoint=Raw()) for host in range(2))
    network.send(greedy, 100 * SEGMENT)
    network.run(1e-6)
    message = network.send(modest, SEGMENT)
    assert (message in times(network.run(), "delivered")) == fair


def test_thresholds_apply_to_each_connections_own_packets():
    network = bottleneck(2, mark_above=5 * FRAME)
    for host in range(2):
        network.send(network.connect([(host, 2)], endpoint=Raw()), 10 * SEGMENT)
    network.run()
    # Of ten one is on the wire, or the first of another's turn, and five may wait.
    assert network.counters()[2]["marked"].sum() == 4 + 5


@pytest.mark.parametrize(("fair", "waits"), [(False, 100), (True, 2)])
def test_a_short_message_does_not_wait_for_all_of_a_long_one(fair, waits):
    network = bottleneck(2, fair=fair)
    long, short = (network.connect([(host, 2)], endpoint=Raw()) for host in range(2))
    network.send(long, 100 * SEGMENT)
    network.run(1e-6)
    message = network.send(short, SEGMENT)
    assert times(network.run(), "delivered")[message] == pytest.approx((waits + 1) * FRAME / RATE, rel=0.5)


def test_short_frames_go_before_all_others_in_their_order():
    network = bottleneck(3)
    long, *short = (
        network.connect([(host, 3)], endpoint=endpoint) for host, endpoint in enumerate((Raw(), SHORT, SHORT))
    )
    network.send(long, 10 * SEGMENT)
    first, second, third = (network.send(connection, 60) for connection in (short[0], short[1], short[0]))
    there = times(network.run(), "delivered")
    assert [there[message] for message in (first, second, third)] == pytest.approx(
        [(FRAME + count * 126) / RATE for count in (1, 2, 3)]
    )


@pytest.mark.parametrize(("fair", "ratio"), [(False, 0.75), (True, 0.97)])
def test_windows_share_a_link_evenly(fair, ratio):
    """Over two seconds, two whose round trips are 2 and 40 ms: first in, first out favours the shorter one."""
    star = Star(3, RATE / 10, buffer=24 * FRAME, fair=fair)
    near, far = (star.connect(host, 2, latency=latency) for host, latency in ((0, 0.001), (1, 0.02)))
    messages = [star.network.send(connection, 4_000_000) for connection in (near, far)]
    star.network.run(2.0)
    sent = [4_000_000 - star.network.unsent(message) for message in messages]
    assert (min(sent) / max(sent) > ratio) == fair
