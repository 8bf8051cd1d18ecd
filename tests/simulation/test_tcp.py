"""Slow start, windows and SimGrid's factors: closed forms, published cases, and invariants on random traffic."""

import math
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from benchmarks.network import Parcel
from dlion_sim.scenario import Lv08, Network, Schedule, Windows
from dlion_sim.simulation.routing import Route, Routing
from dlion_sim.simulation.tcp import IDEAL, TCP, Framing, TcpModel
from tests.simulation.agendas import finish
from tests.simulation.test_delivery import World

SEGMENT = 1448
INITIAL = 10 * SEGMENT
RTT = 0.1
GOODPUT = 100e6 / 8 / TCP.data


def pair(rtt="100 ms", **wan):
    clouds = [{"name": name, "workers": [{"count": 2, "nic": "100 Mbps"}]} for name in "ab"]
    return {"clouds": clouds, "wan": {"bandwidth": "unlimited", "rtt": rtt, **wan}}


def windows(**settings):
    return TcpModel.of(Network(tcp=Windows(**settings)))


def seconds(*sizes, cluster=None, tcp=None, pause=0.0, receiver=2):
    """What each of some messages takes from worker 0, the next `pause` after the one before has been sent."""
    world = World(cluster or pair(), tcp or windows())
    for size in sizes:
        world.transport.send(receiver, Parcel(0, size, 0))
        if pause:
            finish(world.event_queue)
            world.event_queue.advance(world.sent[-1][2] + pause)
    finish(world.event_queue)
    assert len(world.delivered) == len(sizes)
    return [each[3] for each in world.sent]


def test_a_megabyte_over_a_long_round_trip_takes_seven_rounds():
    """Windows of 10, 20, ... 320 segments are 912,240 bytes in six round trips; the rest comes in the seventh."""
    rest = 1e6 - 63 * INITIAL
    assert seconds(1e6) == pytest.approx([6 * RTT + rest / GOODPUT], abs=1e-9)
    assert seconds(1e6, tcp=IDEAL) == pytest.approx([1e6 / GOODPUT])


def test_a_message_within_the_first_window_does_not_wait():
    assert seconds(INITIAL) == pytest.approx([INITIAL / GOODPUT])
    assert seconds(INITIAL + 1) == pytest.approx([RTT + 1 / GOODPUT])


def test_windows_that_fill_the_links_cause_no_waits():
    """The eighth window is more than 1.2 MB, which fill the links for a round trip."""
    assert seconds(20e6) == pytest.approx([7 * RTT + (20e6 - 127 * INITIAL) / GOODPUT])


def test_the_initial_window_is_a_setting():
    assert seconds(1e6, tcp=windows(initial_window=1000)) == pytest.approx([1e6 / GOODPUT])
    one = seconds(1e6, tcp=windows(initial_window=1))  # 1023 segments would be more
    assert one == pytest.approx([9 * RTT + (1e6 - 511 * SEGMENT) / GOODPUT])


def test_a_receive_window_bounds_the_rate():
    """Windows of 10, 20 and 40 segments, then 64 KiB a round trip."""
    taken = seconds(10e6, tcp=windows(receive_window="64 KiB"))
    assert taken == pytest.approx([3 * RTT + (10e6 - 7 * INITIAL) / (65536 / RTT)])


def test_losses_bound_the_rate_by_the_law_of_mathis():
    loss = 1e-3
    largest = SEGMENT * math.sqrt(1.5 / loss)
    taken = seconds(10e6, cluster=pair(loss=loss))
    assert taken == pytest.approx([2 * RTT + (10e6 - 3 * INITIAL) / (largest / RTT)])


def test_a_loss_rate_is_that_of_a_path_in_a_direction():
    cluster = pair(loss=1e-4, paths=[{"from": "a", "to": "b", "loss": 0.01}, {"from": "b", "to": "a"}])
    way, back, inside = (World(cluster).transport._routing.route(*ends).loss for ends in ((0, 2), (2, 0), (0, 1)))
    assert (way, back, inside) == (0.01, 1e-4, 0.0)


def test_an_open_window_serves_the_next_messages():
    """Behind each other messages take no longer than one of their sizes together."""
    together = seconds(3e6)
    assert sum(seconds(1e6, 1e6, 1e6)) == pytest.approx(together[0], rel=0.02)
    _, second = seconds(20e6, 1e6)
    assert second == pytest.approx(1e6 / GOODPUT)


def test_rounds_continue_across_messages():
    """Three small ones are in the first window, the fourth waits for the rest of the round."""
    sizes = [INITIAL / 3] * 3 + [2 * INITIAL]
    each = INITIAL / 3 / GOODPUT
    assert seconds(*sizes) == pytest.approx([each, each, each, RTT - 3 * each + 2 * INITIAL / GOODPUT])


@pytest.mark.parametrize(
    ("pause", "restart", "windows_open"),
    [(0.25, True, 64), (0.35, True, 32), (0.95, True, 8), (100.0, True, 1), (100.0, False, 64)],
)
def test_an_idle_window_shrinks(pause, restart, windows_open):
    """By half for each 300 ms, a retransmission timeout; without that it is as large as it was."""
    first, second = seconds(63 * INITIAL, 64 * INITIAL, tcp=windows(idle_restart=restart), pause=pause)
    assert first == pytest.approx(5 * RTT + 32 * INITIAL / GOODPUT)
    rounds = math.ceil(math.log2(64 / windows_open + 1)) - 1
    rest = 64 - windows_open * (2**rounds - 1)
    assert second == pytest.approx(rounds * RTT + rest * INITIAL / GOODPUT)


def test_a_paced_connection_continues_with_the_next_message():
    _, second = seconds(10e6, 1e6, tcp=windows(receive_window="64 KiB"))
    assert second == pytest.approx(1e6 / (65536 / RTT))


def test_the_sent_part_is_known_in_and_between_rounds():
    world, shares = World(pair(), windows()), []
    world.transport.send(2, Parcel(0, 1e6, 0))
    look = lambda: shares.extend(size for _, size in world.transport.under_way())  # noqa: E731
    half = INITIAL / 2 / GOODPUT
    for moment in (0.0, half, RTT / 2, RTT, RTT + half, 2.5 * RTT):
        world.event_queue.after(moment, look)
    finish(world.event_queue)
    expected = [0, INITIAL / 2, INITIAL, INITIAL, 1.5 * INITIAL, 7 * INITIAL]
    assert shares == pytest.approx(expected, abs=1e-3)


def test_true_bandwidths_are_bound_by_the_window():
    world = World(pair(), windows(receive_window="64 KiB"))
    assert world.transport.bytes_per_second([(0, 2)]) == [pytest.approx((65536 / RTT, 65536 / RTT))]
    (alone, shared), *_ = world.transport.bytes_per_second([(0, 2), (0, 1)])
    assert (alone, shared) == pytest.approx((65536 / RTT, 65536 / RTT))
    _, (alone, shared) = world.transport.bytes_per_second([(0, 2), (0, 1)])
    assert alone == pytest.approx(GOODPUT)
    assert shared == pytest.approx(GOODPUT - 65536 / RTT, rel=1e-3)


def test_a_connection_between_two_rounds_is_not_stuck():
    """A link that is gone for good then is noticed when the next round has begun."""
    cluster = pair(bandwidth={"steps": {"0 s": "100 Mbps", "0.05 s": "0 bps"}})
    world = World(cluster, windows())
    world.transport.send(2, Parcel(0, 1e6, 0))
    while not (world.event_queue.is_idle and world.transport.is_stuck):
        world.event_queue.step()
    assert world.event_queue.now == pytest.approx(RTT)
    assert not world.sent


class OneLink(Routing):
    """Both ways between two machines are over one link, as in SimGrid's examples."""

    def __init__(self, bytes_per_second, latency):
        self.capacities_bps = [Schedule.constant(8 * bytes_per_second)]
        self._way = Route((0,), latency)

    def route(self, sender, receiver):
        return self._way


@pytest.mark.parametrize(
    ("settings", "size", "bytes_per_second", "latency", "published"),
    [
        ({}, 100_000, 125_000, 0.01, 0.996079),  # SimGrid's documentation, docs/source/Models.rst; 1 Mbps
        ({}, 10 * 1024**3, 1e10, 0.001, 5.291361),  # SimGrid 3.32
        ({}, 10 * 1024**3, 1e10, 0.1, 529.136052),  # SimGrid 3.32
        ({"latency_factor": 1.0, "bandwidth_factor": 1.0}, 10 * 1024**3, 1e10, 0.001, 5.12 + 0.001),  # CM02
        ({"latency_factor": 1.0, "bandwidth_factor": 1.0}, 10 * 1024**3, 1e10, 0.1, 512 + 0.1),
    ],
)
def test_lv08_takes_as_long_as_in_simgrid(settings, size, bytes_per_second, latency, published):
    world = World(OneLink(bytes_per_second, latency), TcpModel.of(Network(tcp=Lv08(**settings))))
    world.transport.send(1, Parcel(0, size, 0))
    finish(world.event_queue)
    [(_, _, taken)] = world.delivered
    # What goes back over the same link is followed to a thousandth of it.
    assert taken == pytest.approx(published, rel=2e-4 if bytes_per_second == 125_000 else 1e-6)


class Star(Routing):
    """Pairs that share a link in the middle; their own ones have other latencies."""

    def __init__(self, latencies):
        self.capacities_bps = [Schedule.constant(40e6), *[Schedule.constant(100e6)] * (2 * len(latencies))]
        self._latencies = latencies

    def route(self, sender, receiver):
        return Route((1 + sender, 0, 1 + receiver), self._latencies[sender // 2])


@pytest.mark.parametrize(
    ("factor", "ends"),
    [(13.01, [2.662776, 4.698801, 6.315667]), (1.0, [2.844500, 4.694648, 6.195567])],
)
def test_flows_of_longer_round_trips_get_smaller_shares_as_in_simgrid(factor, ends):
    """10 MB each over round trips of 20, 100 and 400 ms: SimGrid 3.32, with network/crosstraffic:0."""
    tcp = replace(TcpModel.of(Network(tcp=Lv08(latency_factor=factor))), framing=Framing(1 / 0.97, 0.0))
    world = World(Star([0.01, 0.05, 0.2]), tcp)
    for sender in (0, 2, 4):
        world.transport.send(sender + 1, Parcel(sender, 1e7, 0))
    finish(world.event_queue)
    assert [time for _, _, time in world.delivered] == pytest.approx(ends, abs=2e-6)


def test_true_bandwidths_are_weighted():
    """1 / (10 ms + 20,537 bytes over 5, 12.5 and 12.5 MB/s) against 1 / (200 ms + the same)."""
    tcp = replace(TcpModel.of(Network(tcp=Lv08())), framing=Framing(1.0, 0.0))
    (_, near), (_, far) = World(Star([0.01, 0.2]), tcp).transport.bytes_per_second([(0, 1), (2, 3)])
    links = 20537 * (1 / 5e6 + 2 / 12.5e6)
    assert near / far == pytest.approx((0.2 + links) / (0.01 + links), rel=1e-4)
    assert near + far == pytest.approx(5e6)


def test_latencies_before_the_first_byte_overlap_within_a_queue():
    """They pass side by side, and the messages then follow each other."""
    tcp = TcpModel.of(Network(tcp=Lv08()))
    world = World(OneLink(1e6, 0.01), replace(tcp, framing=Framing(1.0, 0.0)))
    for _ in range(3):
        world.transport.send(1, Parcel(0, 1e5, 0))
    finish(world.event_queue)
    assert [time for _, _, time in world.delivered] == pytest.approx([0.2301, 0.3301, 0.4301])


CLOCK = 1e-12
"""Seconds: coarser than the clock is, which after some seconds has no more digits."""
SIZES = st.floats(1, 1e7)
LARGEST = st.floats(1500, 1e6).map("{} B".format)
WINDOWS = st.builds(windows, initial_window=st.integers(1, 100), receive_window=LARGEST, idle_restart=st.booleans())
MODELS = WINDOWS | st.builds(lambda window: TcpModel.of(Network(tcp=Lv08(window=window))), LARGEST)


@given(sizes=st.lists(SIZES, min_size=1, max_size=5), tcp=MODELS, rtt=st.floats(0, 0.5), loss=st.floats(0, 0.1))
def test_no_message_is_faster_than_without_windows(sizes, tcp, rtt, loss):
    cluster = pair(f"{rtt} s", loss=loss)
    with_windows, without = (World(cluster, model) for model in (tcp, TcpModel(tcp.framing, tcp.latency_factor)))
    for world in (with_windows, without):
        for size in sizes:
            world.transport.send(2, Parcel(0, size, 0))
        finish(world.event_queue)
    for (message, _, slow), (same, _, fast) in zip(with_windows.delivered, without.delivered, strict=True):
        assert message is same or message == same
        assert slow >= fast * (1 - 1e-9)
    largest, round_trip = with_windows.transport._window(0, 2)
    windows_needed = sum(sizes) * tcp.framing.data / largest
    # Nor slower than by a window a round trip, with those that it took to open it: at most one for each doubling.
    opening = 1 + math.log2(max(2.0, largest / TCP.data))
    assert slow <= fast + (windows_needed + opening + len(sizes)) * round_trip + 1e-9


@given(sizes=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), SIZES), max_size=8), tcp=WINDOWS)
def test_without_round_trips_nothing_changes(sizes, tcp):
    cluster = {**pair("0 s"), "clouds": [{**cloud, "lan": {"rtt": "0 s"}} for cloud in pair()["clouds"]]}
    ends = []
    for model in (tcp, IDEAL):
        world = World(cluster, model)
        for sender, receiver, size in sizes:
            if sender != receiver:
                world.transport.send(receiver, Parcel(sender, size, 0))
        finish(world.event_queue)
        ends.append(world.sent)
    assert ends[0] == ends[1]


@example(
    messages=[(0, 1, 1.2711783447451257, 1.0)],
    tcp=windows(initial_window=1, receive_window="1500.0 B", idle_restart=False),
    moments=[],
)
@given(
    messages=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), SIZES, st.floats(0, 3)), max_size=12),
    tcp=MODELS,
    moments=st.lists(st.floats(0, 10), max_size=3),
)
def test_all_messages_arrive_in_order_within_the_capacity_of_links(messages, tcp, moments):
    world, carried = World(pair(), tcp), []
    sent = [
        (begin, sender, Parcel(sender, size, number), receiver)
        for number, (sender, receiver, size, begin) in enumerate(messages)
        if sender != receiver
    ]
    for begin, _, parcel, receiver in sent:
        world.event_queue.after(begin, lambda to=receiver, what=parcel: world.transport.send(to, what))
    for moment in moments:
        world.event_queue.after(moment, lambda: carried.extend(world.transport.under_way()))
    finish(world.event_queue)
    assert len(world.delivered) == len(sent)
    for sender in range(4):
        out = [parcel for _, _, parcel, _ in sent if parcel.sender == sender]
        if out:
            first = min(begin for begin, _, parcel, _ in sent if parcel.sender == sender)
            last = max(time for one, _, time, _ in world.sent if one == sender)
            seconds = sum(parcel.size for parcel in out) * tcp.framing.data / 12.5e6
            assert last - first >= seconds * (1 - 1e-9) - CLOCK
    for transfer, size in carried:
        assert -1e-3 <= size <= transfer.message.size + 1e-3
    for receiver in range(4):
        for sender in range(4):
            order = [
                (begin, parcel.round) for begin, _, parcel, to in sent if (parcel.sender, to) == (sender, receiver)
            ]
            came = [parcel.round for parcel, to, _ in world.delivered if (parcel.sender, to) == (sender, receiver)]
            assert came == [number for _, number in sorted(order, key=lambda each: each[0])]
