"""Queues of connections in a network of flows: closed forms, the packet level beside it, and invariants."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from benchmarks.network import Bulk, Parcel
from dlion_sim.assembly.transfer import PROBE_BYTES
from dlion_sim.protocol.messages import Channel
from dlion_sim.scenario import Flows, Network, from_data
from dlion_sim.scenario.network import FULL_FRAME as FRAME
from dlion_sim.simulation import simulate
from dlion_sim.simulation.carrier import Dropped
from dlion_sim.simulation.tcp import IDEAL, TCP, TcpModel
from tests.simulation.agendas import finish
from tests.simulation.test_delivery import World

QUEUE = 36e3
MB = 1e6
QUEUED = replace(IDEAL, framing=replace(TCP, data=1.0, acknowledgements=0.0), queue=QUEUE)
"""Sizes of messages are sizes on links."""


def machine(up, down):
    """Bandwidths in MB/s, or schedules of them."""
    mbps = lambda each: each if isinstance(each, dict) else f"{8 * each} Mbps"  # noqa: E731
    return {"nic": {"up": mbps(up), "down": mbps(down)}}


def lan(*machines):
    return {"clouds": [{"name": "a", "workers": list(machines), "lan": {"rtt": "0 s"}}]}


def parcel(sender, size, channel=Channel.WEIGHTS):
    """By default on a channel whose links need not be measured, so that no probe follows it."""
    return Parcel(sender, size, 0, Bulk(channel))


class QueuedWorld(World):
    def __init__(self, cluster, tcp=QUEUED):
        super().__init__(cluster, tcp)

    def run(self, *messages, channel=Channel.WEIGHTS):
        """Send (sender, receiver, bytes) at once, and wait for all."""
        for sender, receiver, size in messages:
            self.transport.send(receiver, parcel(sender, size, channel))
        finish(self.event_queue)
        assert len(self.sent) == len(self.timed) == len(self.delivered) == len(messages)
        return self

    def times(self, receiver):
        """When messages to a receiver left, and when they arrived."""
        left = [time for _, to, time, _ in self.sent if to == receiver]
        return left, [time for _, to, time in self.delivered if to == receiver]

    def seconds(self, receiver):
        """How long links took for messages to a receiver, and when these had left."""
        return [(seconds, left) for transfer, seconds, left in self.timed if transfer.receiver == receiver]


def test_a_queue_and_buckets_are_settings_of_flows():
    """A window that a loss halves fills three quarters of a queue, on average."""
    model = TcpModel.of(Network(model=Flows(queue="24 packets", burst="2 packets")))
    assert (model.queue, model.burst) == (18 * FRAME, 2 * FRAME)
    assert (TcpModel.of(Network()).queue, TcpModel.of(Network()).burst) == (0.0, 0.0)


def test_a_message_leaves_when_what_remains_of_it_fits_into_the_queue():
    """10 MB/s out and 1 MB/s on: full after 4 ms, then both at 1 MB/s."""
    world = QueuedWorld(lan(machine(10, 10), machine(10, 1))).run((0, 1, 100e3))
    assert world.times(1) == ([pytest.approx((100e3 - QUEUE) / MB)], [pytest.approx(0.1)])
    assert world.seconds(1) == [(pytest.approx(0.1), pytest.approx(0.064))]


def test_a_short_message_leaves_at_the_speed_of_its_senders_nic():
    left, arrived = QueuedWorld(lan(machine(10, 10), machine(10, 1))).run((0, 1, 20e3)).times(1)
    assert (left, arrived) == ([pytest.approx(0.002)], [pytest.approx(0.02)])


def test_behind_a_slower_nic_nothing_waits():
    left, arrived = QueuedWorld(lan(machine(1, 1), machine(10, 10))).run((0, 1, 100e3)).times(1)
    assert left == arrived == [pytest.approx(0.1)]


def test_the_next_message_leaves_behind_what_waits_and_its_link_is_timed_alone():
    world = QueuedWorld(lan(machine(10, 10), machine(10, 1))).run((0, 1, 100e3), (0, 1, 50e3))
    assert world.times(1) == (pytest.approx([0.064, 0.114]), pytest.approx([0.1, 0.15]))
    assert [seconds for seconds, _ in world.seconds(1)] == pytest.approx([0.1, 0.05])


def test_a_links_first_message_is_timed_with_the_probe_behind_it_if_it_is_short():
    """It arrives before its probe, of 32.8 kB, and counts for its part of the time; nothing follows later messages."""
    messages = [(0, 1, 1e3), (0, 1, 1e3)]
    world = QueuedWorld(lan(machine(10, 10), machine(10, 1))).run(*messages, channel=Channel.DATA)
    both = 1e3 + PROBE_BYTES
    assert world.times(1) == (
        pytest.approx([both / (10 * MB), (both + 1e3) / (10 * MB)]),
        pytest.approx([1e3 / MB, (both + 1e3) / MB]),
    )
    assert [seconds for seconds, _ in world.seconds(1)] == pytest.approx([1e3 / MB, 1e3 / MB])


def test_a_long_first_message_needs_no_probe():
    world = QueuedWorld(lan(machine(1, 1), machine(10, 10))).run((0, 1, PROBE_BYTES), channel=Channel.DATA)
    assert world.times(1) == ([PROBE_BYTES / MB], [PROBE_BYTES / MB])


def test_after_a_loss_the_link_is_probed_again():
    """What has arrived was not cut, though its probe was."""
    world, cuts = QueuedWorld(lan(machine(1, 1), machine(10, 10))), []
    for number in range(2):
        begun = world.event_queue.now
        world.transport.send(1, parcel(0, 1e3, Channel.DATA))
        world.event_queue.after(0.01, lambda: cuts.append(world.transport.cut(0, 1)))
        finish(world.event_queue)
        assert world.delivered[number][-1] == pytest.approx(begun + 0.001)
    assert cuts == [Dropped([], 0)] * 2
    assert not world.sent
    assert not world.timed


def test_a_nic_is_free_for_others_once_a_message_has_left():
    """Two share 10 MB/s: 5 MB/s each until the slow one's queue is full, after 9 ms; then 9 MB/s, until it leaves."""
    world = QueuedWorld(lan(machine(10, 10), machine(10, 1), machine(10, 10))).run((0, 1, 45e3), (0, 2, 200e3))
    (slow_left,), (slow_arrived,) = world.times(1)
    assert (slow_left, slow_arrived) == (pytest.approx(0.009), pytest.approx(0.045))
    _, (fast,) = world.times(2)
    assert fast == pytest.approx(0.009 + (200e3 - 45e3) / (10 * MB))


def test_a_queue_is_drained_while_its_senders_nic_is_slow():
    """The receiver does not notice a pause of 30 ms, but a longer one."""
    for pause, late in ((0.03, 0.0), (0.05, 0.05 - QUEUE / MB)):
        up = {"steps": {"0 s": "80 Mbps", "0.05 s": "0 bps", f"{0.05 + pause} s": "80 Mbps"}}
        _, (arrived,) = QueuedWorld(lan(machine(up, 10), machine(10, 1))).run((0, 1, 100e3)).times(1)
        assert arrived == pytest.approx(0.1 + late, abs=1e-3)


def test_a_queue_fills_up_behind_an_outage():
    """After 1 ms, at which 9 kB have left, of which 1 kB has arrived."""
    down = {"steps": {"0 s": "8 Mbps", "1 ms": "0 bps", "1 s": "8 Mbps"}}
    left, arrived = QueuedWorld(lan(machine(10, 10), machine(10, down))).run((0, 1, 30e3), (0, 1, 30e3)).times(1)
    assert left == pytest.approx([0.003, 1.023], abs=FRAME / MB)
    assert arrived == pytest.approx([1.029, 1.059])


def two_clouds(here, there, path):
    """With a path of so many MB/s."""
    clouds = [{"name": name, "workers": own, "lan": {"rtt": "0 s"}} for name, own in (("a", here), ("b", there))]
    paths = [{"between": ["a", "b"], "bandwidth": f"{8 * path} Mbps", "rtt": "0 s"}]
    return {"clouds": clouds, "wan": {"paths": paths}}


def with_slow_receiver(down):
    """Two fast senders, 2 MB/s to another cloud, and there a receiver that is slow and a fast one."""
    return two_clouds([machine(10, 10)] * 2, [machine(10, down), machine(10, 10)], 2)


def test_what_waits_for_a_slow_receiver_has_taken_its_share_of_the_path():
    """A receiver takes 0.5 MB/s; until 36 kB wait for it, for 72 ms, the path carries 1 MB/s of each."""
    world = QueuedWorld(with_slow_receiver(0.5)).run((0, 2, 200e3), (1, 3, 200e3))
    assert world.times(2) == ([pytest.approx((200e3 - QUEUE) / 5e5)], [pytest.approx(0.4)])
    assert world.times(3)[1] == [pytest.approx(0.072 + 128e3 / 1.5e6)]


def test_a_queue_moves_to_a_link_that_becomes_the_tightest():
    """Both queues are full before the path. From 0.1 s on a receiver takes 0.5 MB/s only, and what waits moves on."""
    slow = {"steps": {"0 s": "80 Mbps", "100 ms": "4 Mbps"}}
    world = QueuedWorld(with_slow_receiver(slow)).run((0, 2, 300e3), (1, 3, 300e3))
    assert world.times(2) == ([pytest.approx(0.1 + 164e3 / 5e5)], [pytest.approx(0.5)])
    assert world.times(3)[1] == [pytest.approx(0.172 + 128e3 / 1.5e6)]


BURST = 3e3
BUCKETS = replace(QUEUED, burst=BURST)


@pytest.mark.parametrize(("rate", "at_once"), [(1, BURST), (5, 0.002 * 5 * MB)])
def test_the_first_bytes_of_a_message_pass_at_once_through_buckets(rate, at_once):
    """At least what the link carries in 2 ms. How long the link takes is measured as if they did not."""
    world = QueuedWorld(lan(machine(10, 10), machine(10, rate)), BUCKETS).run((0, 1, 100e3))
    assert world.times(1)[1] == [pytest.approx((100e3 - at_once) / (rate * MB))]
    assert [seconds for seconds, _ in world.seconds(1)] == [pytest.approx(0.1 / rate)]


@pytest.mark.parametrize(("pause", "at_once"), [(0.0, 0.0), (0.001, 1e3), (0.1, BURST)])
def test_a_bucket_fills_up_at_the_rate_of_its_link(pause, at_once):
    world = QueuedWorld(lan(machine(1, 1), machine(10, 10)), BUCKETS)
    first = (100e3 - BURST) / MB
    world.event_queue.after(first + pause, lambda: world.transport.send(1, parcel(0, 100e3)))
    world.transport.send(1, parcel(0, 100e3))
    finish(world.event_queue)
    assert world.times(1)[1] == pytest.approx([first, first + pause + (100e3 - at_once) / MB])


def test_one_of_two_messages_takes_what_is_in_a_bucket():
    world = QueuedWorld(lan(machine(1, 1), machine(10, 10), machine(10, 10)), BUCKETS).run((0, 1, 50e3), (0, 2, 50e3))
    (one,), (other,) = world.times(1)[1], world.times(2)[1]
    assert (one, other) == (pytest.approx(2 * (50e3 - BURST) / MB), pytest.approx((100e3 - BURST) / MB))


def test_through_a_full_link_nothing_passes_at_once():
    world = QueuedWorld(lan(machine(10, 10), machine(10, 10), machine(10, 1)), BUCKETS)
    world.transport.send(2, parcel(0, 100e3))
    world.event_queue.after(0.01, lambda: world.transport.send(2, parcel(1, 20e3)))
    finish(world.event_queue)
    (_, _, second), (_, _, first) = world.delivered
    assert second == pytest.approx(0.05)
    assert first == pytest.approx((120e3 - BURST) / MB)


def test_a_message_and_its_probe_that_fit_into_a_bucket_take_hardly_any_time():
    world = QueuedWorld(lan(machine(1, 1), machine(10, 10)), BUCKETS).run((0, 1, 1e3), channel=Channel.DATA)
    assert world.times(1)[1] == [pytest.approx(0.0, abs=2e-6)]
    assert [seconds for seconds, _ in world.seconds(1)] == [pytest.approx(1e3 / MB, rel=1e-3)]


def test_what_an_outage_holds_passes_no_bucket():
    down = {"steps": {"0 s": "8 Mbps", "1 ms": "0 bps", "1 s": "8 Mbps"}}
    world = QueuedWorld(lan(machine(10, 10), machine(10, down)), BUCKETS)
    world.event_queue.after(0.01, lambda: world.transport.send(1, parcel(0, 30e3)))
    finish(world.event_queue)
    assert world.times(1)[1] == [pytest.approx(1.03)]


def test_buckets_are_of_links_with_queues():
    with pytest.raises(ValidationError, match="is for links with queues"):
        Network(model=Flows(burst="2 packets"))


def test_a_network_whose_messages_wait_for_ever_is_stuck():
    world = QueuedWorld(lan(machine(10, 10), machine(10, {"steps": {"0 s": "80 Mbps", "1 ms": "0 bps"}})))
    world.transport.send(1, parcel(0, 20e3))
    finish(world.event_queue)
    assert (len(world.sent), len(world.delivered)) == (1, 0)
    assert world.transport.is_stuck


def test_what_has_arrived_of_messages_is_known_also_after_they_have_left():
    world, seen = QueuedWorld(lan(machine(10, 10), machine(10, 1))), []
    for _ in range(2):
        world.transport.send(1, parcel(0, 50e3))
    for seconds in (0.0, 0.01, 0.03, 0.07):
        world.event_queue.after(seconds, lambda: seen.append([size for _, size in world.transport.under_way()]))
    finish(world.event_queue)
    # The first one leaves after 14 ms; the second begins then.
    assert seen == [[0.0], [pytest.approx(10e3)], pytest.approx([30e3, 0.0]), [pytest.approx(20e3)]]


@pytest.mark.parametrize(("seconds", "carried"), [(0.0, [0.0]), (0.03, [30e3, 0.0]), (0.07, [20e3, 0.0])])
def test_cut_messages_are_those_that_have_not_arrived(seconds, carried):
    world, cuts = QueuedWorld(lan(machine(10, 10), machine(10, 1))), []
    for _ in range(3):
        world.transport.send(1, parcel(0, 50e3))
    world.event_queue.after(seconds, lambda: cuts.append(world.transport.cut(1, 0)))
    world.event_queue.after(0.2, lambda: world.transport.send(1, parcel(0, 100e3)))
    finish(world.event_queue)
    [(begun, others)] = cuts
    assert [size for _, size in begun] == pytest.approx(carried)
    *before, (_, _, last) = world.delivered
    assert len(before) + len(begun) + others == 3
    assert last == pytest.approx(0.3)  # as over a new connection
    assert not list(world.transport.under_way())


def test_transfers_take_as_long_as_packet_by_packet(tmp_path):
    """More nearly than without queues, where links are unequal: messages leave earlier, and DLion sends fast links
    less."""
    nics = [(13.5, 27.5), (6.2, 5.7), (9.6, 10.3), (10.9, 11.4), (14.2, 8), (10.8, 20.6)]
    workers = [{"compute": "1 core", "nic": {"up": f"{up} Mbps", "down": f"{down} Mbps"}} for up, down in nics]
    clouds = [{"name": name, "workers": some} for name, some in (("a", workers[:2]), ("b", workers[2:]))]
    cluster = {"clouds": clouds, "wan": {"bandwidth": "17 Mbps", "rtt": "0 s"}}
    packets = {"kind": "packets", "fair": True, **dict.fromkeys(("buffer", "drop_above", "mark_above"), "23 packets")}
    models = {
        "packets": {**packets, "delays": "receivers"},
        "plain": "flows",
        "queued": {"kind": "flows", "queue": "24 packets"},
    }
    means = {}
    for name, model in models.items():
        data = {
            "dataset": "digits",
            "model": "mlp",
            "batch_size": 32,
            "compute_time": {"alpha": "30 ms", "beta": "10 ms"},
            "cost_as": {"parameters": "100 k"},
        }
        given = {"name": name, "duration": "20 s", "workload": data, "cluster": cluster, "system": "dlion"}
        given["transport"] = {"kind": "reliable", "recovery": "linux"}
        run = simulate(from_data({**given, "network": {"model": model}}), tmp_path / name)
        sent = run.transfers().query("kind == 'contribution' and begin > 3")
        sent = sent.assign(seconds=sent["end"] - sent["begin"])
        means[name] = sent.groupby(["sender", "receiver"])[["seconds", "bytes"]].mean()
    off = {name: np.log(means[name] / means["packets"]).abs().mean() for name in ("plain", "queued")}
    assert (off["queued"] < 0.75 * off["plain"]).all()


speeds = st.floats(0.5, 20.0)
parcels = st.tuples(st.integers(0, 3), st.integers(0, 3), st.floats(100.0, 300e3)).filter(
    lambda each: each[0] != each[1]
)


@settings(deadline=None)
@given(
    machines=st.lists(st.tuples(speeds, speeds), min_size=4, max_size=4),
    messages=st.lists(parcels, min_size=1, max_size=12),
    queue=st.sampled_from([10 * FRAME, QUEUE, 1e9]),
    path=st.none() | speeds,
    burst=st.sampled_from([0.0, BURST]),
)
def test_queues_keep_order_and_hold_no_more_than_fits(machines, messages, queue, path, burst):
    """All messages arrive, in the order in which they left. When one has left, what waits fits into the queue, give or
    take a frame. No NIC is faster than it is, nor a path between two machines and the others, if there is one, but for
    what buckets let pass."""
    workers = [machine(*each) for each in machines]
    cluster = lan(*workers) if path is None else two_clouds(workers[:2], workers[2:], path)
    world = QueuedWorld(cluster, replace(QUEUED, queue=queue, burst=burst))
    waiting = []
    note = world.transport._listener.sent

    def sent(transfer):
        note(transfer)
        queued = world.transport._queued
        name = transfer.sender, transfer.receiver, transfer.message.body.channel
        waiting.append(sum(left for each, left in queued.under_way([name]) if each.began <= transfer.began))

    world.transport._listener.sent = sent
    world.run(*messages)

    def moved(sizes, speed):
        """What is not in buckets, which hold as much of a message at most."""
        bucket = max(burst, 0.002 * speed * MB) if burst else 0.0
        return sum(sizes) - bucket * len(sizes)

    assert max(waiting) <= (queue + FRAME) * (1 + 1e-6)
    for pair in {each[:2] for each in messages}:
        sizes = [size for *ends, size in messages if tuple(ends) == pair]
        timed = [left for transfer, _, left in world.timed if (transfer.sender, transfer.receiver) == pair]
        arrived = [(parcel.size, time) for parcel, to, time in world.delivered if (parcel.sender, to) == pair]
        assert [size for size, _ in arrived] == sizes
        for left, (_, arrival) in zip(timed, arrived, strict=True):
            assert left <= arrival * (1 + 1e-9)
    for number, (up, down) in enumerate(machines):
        out = [size for sender, _, size in messages if sender == number]
        last_left = max((time for sender, _, time, _ in world.sent if sender == number), default=0.0)
        assert moved(out, up) - FRAME * len(out) <= up * MB * last_left * (1 + 1e-6)
        received = [size for _, receiver, size in messages if receiver == number]
        last_arrived = max((time for _, receiver, time in world.delivered if receiver == number), default=0.0)
        assert moved(received, down) <= down * MB * last_arrived * (1 + 1e-6) + len(messages)
    if path is not None:
        across = [size for sender, receiver, size in messages if sender < 2 <= receiver]
        last = max((time for each, to, time in world.delivered if each.sender < 2 <= to), default=0.0)
        assert moved(across, path) <= path * MB * last * (1 + 1e-6) + len(messages)
