"""Reliable connections over packets against the laws of their windows: slow start, timeouts, DCTCP's queue, Mathis."""

from __future__ import annotations

import math

import pytest

from dlion_sim.simulation.packets.network import PacketNetwork, Port, Reliable
from tests.simulation.packets.test_closed_forms import FRAME, NO_TIME, RATE, SEGMENT, delivered


def test_slow_start_doubles_the_window_each_round_trip():
    """1 MB is 691 segments: 10, 20, ... 320 in six round trips, and 61 in the seventh, which needs no more of it than
    the half of its acknowledgements that let those go."""
    network = PacketNetwork([Port(RATE)] * 4)
    network.send(network.connect([(0, 1)], [(2, 3)], latency=0.05), 1_000_000)
    (time,) = delivered(network).values()
    rounds, serialised = 6, 2 * FRAME / RATE
    assert 0 < time - (rounds * 0.1 + 0.05 + serialised) < 100 * FRAME / RATE


@pytest.mark.parametrize("window", [1, 2, 10, 40])
def test_a_larger_initial_window_saves_rounds(window):
    network = PacketNetwork([Port(RATE)] * 4)
    endpoint = Reliable(initial_window=window)
    network.send(network.connect([(0, 1)], [(2, 3)], latency=0.05, endpoint=endpoint), 1_000_000)
    (time,) = delivered(network).values()
    rounds = math.ceil(math.log2(691 / window + 1)) - 1
    assert rounds <= (time - 0.05) / 0.1 < rounds + 0.3


@pytest.mark.parametrize("least", [200e-6, 10e-3, 200e-3])
def test_a_lost_tail_waits_for_the_timeout(least):
    """Ten packets come at once where one is sent and eight can wait: only the last is lost."""
    network = PacketNetwork([NO_TIME, Port(10 * RATE, buffer=8 * FRAME), NO_TIME])
    endpoint = Reliable(least_timeout=least)
    network.send(network.connect([(0, 1)], [(2,)], latency=20e-6, endpoint=endpoint), 10 * SEGMENT)
    (time,) = delivered(network).values()
    acknowledged = 9 * FRAME / (10 * RATE) + 2 * 20e-6
    assert network.counters()[1]["dropped"].sum() == 1
    assert least < time - acknowledged < 1.1 * least + 3 * acknowledged


@pytest.mark.parametrize("flows", [1, 2, 4])
def test_dctcp_keeps_the_queue_around_the_threshold(flows):
    """1 Gbps, 100 us, K = 20 packets: the sawtooth is below K + N and its height half the root of 2 N (C RTT + K)."""
    rate, threshold = 10 * RATE, 20
    hosts = [Port(10 * rate)] * (2 * flows)
    network = PacketNetwork([*hosts, Port(rate, mark_above=threshold * FRAME), Port(rate)])
    for flow in range(flows):
        connection = network.connect(
            [(flow, 2 * flows)], [(flows + flow, 2 * flows + 1)], latency=50e-6, endpoint=Reliable(initial_window=2)
        )
        network.send(connection, 1e9)
    network.run(0.2)
    before = network.counters()[2 * flows].copy()
    network.run(0.6)
    queue = network.counters()[2 * flows]
    mean = (queue["byte_seconds"] - before["byte_seconds"]) / 0.4 / FRAME
    height = 0.5 * math.sqrt(2 * flows * (rate * 100e-6 / FRAME + threshold))
    assert threshold + flows - 1.5 * height < mean < threshold + flows
    carried = (queue["carried"] - before["carried"]).sum()
    assert carried / (0.4 * rate) > 0.99
    assert queue["dropped"].sum() == 0


@pytest.mark.parametrize("loss", [0.001, 0.003, 0.01])
def test_random_losses_bound_the_rate_by_the_law_of_mathis(loss):
    """Segments a round trip are the root of 3 / (2 loss), where no timeout interferes."""
    network = PacketNetwork([Port(1000 * RATE)] * 2, seed=3)
    round_trip = 0.02
    connection = network.connect([(0,)], [(1,)], latency=round_trip / 2, loss=loss)
    network.send(connection, 1e12)
    network.run(200 / loss / math.sqrt(1.5 / loss) * round_trip)
    segments = network.counters()[0]["packets"]
    window = segments / (network.now / round_trip)
    assert window == pytest.approx(math.sqrt(1.5 / loss), rel=0.2)
