"""The packet-level network against what can be computed by hand: store and forward, queues, priorities, buffers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.random import default_rng

from dlion_sim.simulation.packets.network import PacketNetwork, Port, Raw, Reliable
from dlion_sim.simulation.packets.parts import Endpoint

SEGMENT, FRAME, ACKNOWLEDGEMENT = 1448, 1514, 66
"""Bytes: of a message in a frame, of that frame on a link, and of an acknowledgement."""
RATE = 100e6 / 8
LATENCY = 0.02
ALL_AT_ONCE = Reliable(initial_window=2000)
NO_TIME = Port(math.inf)


def delivered(network: PacketNetwork, until: float = math.inf) -> dict[int, float]:
    """When each message was there, by its number."""
    return {done.message: done.time for done in network.run(until) if done.what == "delivered"}


def chain(rates: list[float], endpoint: Endpoint) -> tuple[PacketNetwork, int]:
    """Links one after another, with as many back, and a connection over them."""
    network = PacketNetwork([Port(rate) for rate in rates * 2])
    there, back = range(len(rates)), range(len(rates), 2 * len(rates))
    return network, network.connect([there], [back], latency=LATENCY, endpoint=endpoint)


@pytest.mark.parametrize("endpoint", [Raw(), ALL_AT_ONCE])
@pytest.mark.parametrize("hops", [1, 2, 3, 4])
def test_store_and_forward_takes_a_packet_time_more_for_each_further_hop(hops, endpoint):
    network, connection = chain([RATE] * hops, endpoint)
    message = network.send(connection, 100 * SEGMENT)
    expected = (100 + hops - 1) * FRAME / RATE + LATENCY
    assert delivered(network) == {message: pytest.approx(expected, rel=1e-12)}


def test_a_short_last_packet_waits_for_the_one_before_it():
    network, connection = chain([RATE, RATE], Raw())
    message = network.send(connection, 9 * SEGMENT + 100)
    expected = (10 * FRAME + 166) / RATE + LATENCY
    assert delivered(network) == {message: pytest.approx(expected, rel=1e-12)}


@pytest.mark.parametrize("slowest", [0, 1, 2, 3])
def test_the_slowest_link_sets_the_rate(slowest):
    rates = [RATE * (2 + hop) for hop in range(4)]
    rates[slowest] = RATE
    network, connection = chain(rates, Raw())
    message = network.send(connection, 50 * SEGMENT)
    expected = sum(FRAME / rate for rate in rates) + 49 * FRAME / RATE + LATENCY
    assert delivered(network) == {message: pytest.approx(expected, rel=1e-12)}


def test_an_acknowledgement_crosses_each_link():
    network, connection = chain([RATE] * 3, ALL_AT_ONCE)
    network.send(connection, 10 * SEGMENT)
    times = {done.what: done.time for done in network.run()}
    assert times["sent"] == pytest.approx(10 * FRAME / RATE, rel=1e-12)
    back = 3 * ACKNOWLEDGEMENT / RATE + LATENCY
    assert times["acknowledged"] - times["delivered"] == pytest.approx(back, rel=1e-9)


@pytest.mark.parametrize("endpoint", [Raw(), ALL_AT_ONCE])
def test_two_flows_share_a_link_packet_by_packet(endpoint):
    network = PacketNetwork([Port(RATE)] * 6)  # the last three are the ways to the receiver and back
    flows = [network.connect([(host, 2)], [(3, 4 + host)], latency=LATENCY, endpoint=endpoint) for host in (0, 1)]
    for flow in flows:
        network.send(flow, 100 * SEGMENT)
    first, last = sorted(delivered(network).values())
    assert last == pytest.approx(201 * FRAME / RATE + LATENCY, rel=1e-12)
    assert first == pytest.approx(last - FRAME / RATE, rel=1e-12)


def poisson(rates: list[float], packets: int, sizes: list[int], seed: int) -> tuple[np.ndarray, ...]:
    """Arrivals of each class at `rates` a second, over one link of RATE: times, classes, and waits as simulated.

    Gaps and classes are quantiles of their distributions in random order, so that the load is exact and means settle
    sooner.
    """
    chance = default_rng(seed)
    quantiles = (np.arange(packets) + 0.5) / packets
    times = np.cumsum(chance.permutation(-np.log1p(-quantiles))) / sum(rates)
    classes = chance.permutation(np.searchsorted(np.cumsum(rates) / sum(rates), quantiles))
    network = PacketNetwork([NO_TIME] * len(rates) + [Port(RATE)])
    sources = [
        network.connect([(k, len(rates))], priority=k, endpoint=Raw(payload=size - 66)) for k, size in enumerate(sizes)
    ]
    began: dict[int, int] = {}
    waits = np.full(packets, np.nan)

    def note(until: float) -> None:
        for message, time in delivered(network, until).items():
            packet = began.pop(message)
            waits[packet] = time - times[packet] - sizes[classes[packet]] / RATE

    for packet, (time, k) in enumerate(zip(times, classes, strict=True)):
        note(time)
        began[network.send(sources[k], sizes[k] - 66)] = packet
    note(math.inf)
    return times, classes, waits


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_packets_wait_as_in_an_m_d_1_queue(load):
    service = FRAME / RATE
    times, _, waits = poisson([load / service], 20_000, [FRAME], seed=1)
    exact = np.zeros_like(waits)  # by Lindley's recursion, of these very arrivals
    for packet, gap in enumerate(np.diff(times), start=1):
        exact[packet] = max(0.0, exact[packet - 1] + service - gap)
    np.testing.assert_allclose(waits, exact, atol=1e-9)
    assert waits.mean() == pytest.approx(load / (2 * (1 - load)) * service, rel=0.05)


def test_urgent_packets_wait_less_by_cobhams_formula():
    """Two classes, the one on the wire is not interrupted."""
    sizes, loads = [566, FRAME], [0.3, 0.3]
    services = [size / RATE for size in sizes]
    rates = [load / service for load, service in zip(loads, services, strict=True)]
    _, classes, waits = poisson(rates, 20_000, sizes, seed=3)
    residual = sum(rate * service**2 for rate, service in zip(rates, services, strict=True)) / 2
    urgent = residual / (1 - loads[0])
    assert waits[classes == 0].mean() == pytest.approx(urgent, rel=0.03)
    assert waits[classes == 1].mean() == pytest.approx(urgent / (1 - sum(loads)), rel=0.05)


@pytest.mark.parametrize("room", [0, 1, 7, 7.9])
def test_a_burst_is_dropped_beyond_the_buffer(room):
    """One packet is on the wire, `room` wait, and all others are dropped."""
    network = PacketNetwork([NO_TIME, Port(RATE, buffer=room * FRAME)])
    network.send(network.connect([(0, 1)], endpoint=Raw()), 50 * SEGMENT)
    network.run()
    _, queue = network.counters()
    kept = int(room) + 1
    assert (queue["packets"], queue["dropped"].sum()) == (kept, 50 - kept)
    assert queue["most"] == int(room) * FRAME
    waiting = sum(range(1, int(room) + 1)) * FRAME * FRAME / RATE
    assert queue["byte_seconds"] == pytest.approx(waiting, rel=1e-9)


@pytest.mark.parametrize("factor", [1, 2, 4])
def test_an_oversubscribed_uplink_multiplies_the_time(factor):
    """Four hosts of a leaf, each to one of its own in the other leaf."""
    hosts, size = 4, 2_000_000
    uplink = Port(hosts / factor * RATE * 10, buffer=500e3, mark_above=65 * FRAME)
    network = PacketNetwork([Port(RATE * 10)] * (4 * hosts) + [uplink] * 2)
    for host in range(hosts):
        there, back = (host, 4 * hosts, hosts + host), (2 * hosts + host, 4 * hosts + 1, 3 * hosts + host)
        network.send(network.connect([there], [back], latency=20e-6), size)
    alone = size / SEGMENT * FRAME / (RATE * 10)
    assert max(delivered(network).values()) == pytest.approx(factor * alone, rel=0.03)
