"""Packets in queues: nothing is lost or made, queues keep their bounds and order, on random networks and traffic."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlion_sim.simulation.packets.network import CLASSES, Bounded, PacketNetwork, Pfabric, Port, Raw, Reliable
from tests.simulation.packets.networks import RATE, Star, bound, cut, times

FRAME = 1514


def balance(network: PacketNetwork) -> tuple[int, int, int]:
    """Packets ever, gone, and still on wires, in queues or on their way."""
    state = network._memory["state"][0]
    live = network._memory.used("packets") - int(state["free"])
    return int(state["made"]), int(state["ended"]), live


traffic = st.lists(
    st.tuples(
        st.integers(0, 3),  # sender
        st.integers(0, 3),  # receiver
        st.integers(1, 60_000),  # bytes
        st.integers(0, CLASSES - 1),
        st.booleans(),  # protected
        st.floats(0, 0.02),  # seconds after the one before
    ),
    min_size=1,
    max_size=25,
)
queues = st.fixed_dictionaries(
    {
        "buffer": st.integers(0, 20) | st.just(math.inf),
        "drop_above": st.integers(0, 10),
        "mark_above": st.integers(0, 10),
    }
)


def endpoint(kind: str, protected: bool):
    return {
        "raw": Raw(protected=protected),
        "reliable": Reliable(least_timeout=0.01),
        "probing": Reliable(least_timeout=0.01, linux=True),
        "pfabric": Pfabric(window=8, timeout=0.01),
    }[kind]


def test_a_burst_passes_at_once_after_a_pause_of_its_length():
    """Three packets of ten; after the time of two packets, two more that have been saved; the next one at its rate."""
    network = PacketNetwork([Port(math.inf), Port(RATE, burst=3 * FRAME)])
    connection = network.connect([(0, 1)], endpoint=Raw())
    packet = FRAME / RATE
    sent = [network.send(connection, FRAME - 66) for _ in range(10)]
    there = times(network.run(), "delivered")
    assert [there[each] for each in sent] == pytest.approx([0, 0, 0, *(packet * n for n in range(1, 8))], abs=1e-12)
    network.run(9 * packet)
    sent = [network.send(connection, FRAME - 66) for _ in range(4)]
    there = times(network.run(), "delivered")
    assert [there[each] / packet for each in sent] == pytest.approx([9, 9, 10, 11])


def test_a_burst_is_used_up_when_the_rate_changes():
    """Twice as fast from the middle of a packet on: what is left of it takes half as long, and so do the next ones."""
    network = PacketNetwork([Port(math.inf), Port(RATE, burst=FRAME)])
    connection = network.connect([(0, 1)], endpoint=Raw())
    packet = FRAME / RATE
    sent = [network.send(connection, FRAME - 66) for _ in range(4)]
    told = network.run(packet / 2)
    network.resize(1, 2 * RATE)
    there = times([*told, *network.run()], "delivered")
    assert [there[each] / packet for each in sent] == pytest.approx([0, 0.75, 1.25, 1.75], abs=1e-9)


@pytest.mark.parametrize("before", [0, 1448])
def test_a_nic_sends_the_message_with_least_left_first(before):
    """Whatever was sent before, of which the sender does not know yet that it arrived."""
    network = PacketNetwork([Port(1e6)] * 3, by_size=True)
    endpoint = Pfabric(window=200, timeout=1.0)
    one, other = (network.connect([(0, 1)], [(2,)], latency=0.05, endpoint=endpoint) for _ in range(2))
    if before:
        network.send(one, before)
    long, short = network.send(one, 100_000), network.send(other, 50_000)
    left = times(network.run(), "sent")
    assert left[short] < 0.06
    assert left[long] == pytest.approx((before + 150_000) / 1e6, rel=0.1)


@pytest.mark.parametrize("kind", ["raw", "reliable", "probing", "pfabric"])
@settings(max_examples=25, deadline=None)
@given(traffic, queues, st.integers(0, 4), st.floats(0, 0.02), st.booleans())
def test_packets_and_bytes_are_conserved_within_the_bounds_of_queues(kind, messages, limits, burst, loss, shares):
    limits = {name: (value + 1) * FRAME for name, value in limits.items()}
    pool = [limits["buffer"]] if shares else []
    down = Port(RATE, **limits, burst=burst * FRAME, switch=0 if shares else -1)
    network = PacketNetwork([Port(RATE)] * 4 + [down] * 4, switches=pool, by_size=kind == "pfabric", seed=1)
    told, sizes, connections = [], {}, {}
    now = 0.0
    for sender, receiver, size, priority, protected, pause in messages:
        now += pause
        told += network.run(now)
        key = sender, receiver, priority, protected
        if key not in connections:
            ways = [[(one, 4 + other)] for one, other in ((sender, receiver), (receiver, sender))]
            connections[key] = network.connect(
                *ways, latency=0.001, loss=loss, priority=priority, endpoint=endpoint(kind, protected)
            )
        sizes[network.send(connections[key], size)] = size
        made, ended, live = balance(network)
        assert made == ended + live
        counted = network.counters()
        assert (counted["queued"] <= limits["buffer"]).all()
        if shares:
            assert counted["queued"].sum() <= limits["buffer"]
    told += network.run()
    made, ended, live = balance(network)
    assert (made, live) == (ended, 0)
    assert not network.is_moving
    assert network.is_quiet
    counted = network.counters()
    assert (counted["queued"] == 0).all()
    assert (counted["most"] <= limits["buffer"]).all()
    assert counted["packets"].sum() == network.hops
    there = times(told, "delivered")
    if kind == "raw":
        lost = made - counted["packets"][4:].sum() - counted["dropped"].sum()
        assert lost >= 0 if loss else lost == 0
    else:
        assert set(there) == set(sizes)
        assert set(times(told, "acknowledged")) == set(sizes)
    sent = times(told, "sent")
    assert set(sent) == set(sizes)
    assert all(sent[message] <= there[message] for message in there)


@pytest.mark.parametrize("kind", ["raw", "reliable", "probing", "pfabric"])
def test_results_do_not_depend_on_how_often_the_network_is_advanced(kind):
    def run(looks):
        star = Star(4, buffer=12 * FRAME, seed=3)
        for sender in range(3):
            connection = star.connect(sender, 3, latency=0.002, loss=0.01, endpoint=endpoint(kind, True))
            for size in (50_000, 3_000, 120_000):
                star.network.send(connection, size)
        told = []
        for look in looks:
            told += star.network.run(look)
        return told + star.network.run(), star.network.counters().tobytes()

    once = run([])
    assert run(np.linspace(0.001, 0.4, 57)) == once
    assert len(once[0]) >= 9


def test_classes_have_strict_priority_and_are_first_in_first_out():
    """Thirty packets of each of three classes wait: those of the first leave first, each class in its order."""
    network = PacketNetwork([Port(math.inf)] * 3 + [Port(RATE)])
    sent = {}
    for number in range(30):
        for priority in (2, 1, 0):
            connection = network.connect([(priority, 3)], priority=priority, endpoint=Raw())
            sent[network.send(connection, 1448)] = (priority, number)
    order = [sent[message] for message in times(network.run(), "delivered")]
    on_the_wire, *rest = order
    assert on_the_wire == (2, 0)
    assert rest == sorted(set(sent.values()) - {on_the_wire})


def test_unprotected_packets_are_dropped_and_others_are_marked():
    network = PacketNetwork([Port(math.inf), Port(RATE, drop_above=5 * FRAME, mark_above=5 * FRAME)])
    for protected in (False, True):
        network.send(network.connect([(0, 1)], priority=int(protected), endpoint=Raw(protected=protected)), 20 * 1448)
        network.run()
    _, queue = network.counters()
    assert queue["dropped"].tolist() == [14] + 7 * [0]
    assert queue["marked"].tolist() == [0, 14] + 6 * [0]


def test_a_nic_takes_turns_among_its_connections_and_urgent_ones_come_first():
    network = PacketNetwork([Port(RATE), Port(RATE)])
    first, second, urgent = (network.connect([(0, 1)], priority=p, endpoint=Raw()) for p in (1, 1, 0))
    sent = [network.send(connection, 10 * 1448) for connection in (first, second, urgent)]
    left = times(network.run(), "sent")
    ends = [left[message] * RATE / FRAME for message in sent]
    assert ends == pytest.approx([28, 30, 11])  # one packet of the first was on the wire already


@pytest.mark.parametrize("spray", [False, True])
def test_sprayed_packets_take_all_paths_in_turn(spray):
    network = PacketNetwork([Port(4 * RATE), *[Port(RATE)] * 4, Port(4 * RATE)], spray=spray)
    network.send(network.connect([(0, way, 5) for way in (1, 2, 3, 4)], endpoint=Raw()), 400 * 1448)
    network.run()
    packets = network.counters()["packets"].tolist()
    assert packets == ([400, 100, 100, 100, 100, 400] if spray else [400, 400, 0, 0, 0, 400])


def test_packets_wait_during_an_outage_and_take_longer_on_a_slower_link():
    network = PacketNetwork([Port(RATE), Port(RATE)])
    message = network.send(network.connect([(0, 1)], endpoint=Raw()), 100 * 1448)
    whole = 101 * FRAME / RATE
    network.run(0.005)
    network.resize(1, 0)
    network.run(1.005)
    assert not network.is_moving
    network.resize(1, RATE / 2)
    done = times(network.run(), "delivered")[message]
    assert done == pytest.approx(1.005 + 2 * (whole - 0.005))


def test_a_missing_port_is_not_resized():
    with pytest.raises(ValueError, match="there is no port 2"):
        PacketNetwork([Port(1.0)] * 2).resize(2, 1.0)


def test_losses_are_drawn_in_proportion_and_the_same_for_a_seed():
    def dropped(seed):
        network = PacketNetwork([Port(RATE), Port(RATE)], seed=seed)
        connections = [network.connect([(0, 1)], loss=0.1, endpoint=Raw()) for _ in range(2)]
        for connection in connections:
            network.send(connection, 10_000 * 1448)
        network.run()
        return 20_000 - int(network.counters()["packets"][1])

    one = dropped(1)
    assert one == pytest.approx(2000, abs=4 * math.sqrt(20_000 * 0.09))
    assert dropped(1) == one != dropped(2)


def test_control_frames_are_never_dropped():
    """Nine in ten packets are lost, and there is no room in any queue; what is asked for and answered comes through."""
    star = Star(2, buffer=0, seed=5)
    connection = star.connect(0, 1, latency=0.001, loss=0.5, loss_back=0.9, endpoint=Bounded())
    message = star.network.send_cut(connection, cut(40), bound(40, 0.0), header=100)
    assert times(star.network.run(60), "acknowledged").keys() == {message}
    assert star.network.pieces(message).received.all()
