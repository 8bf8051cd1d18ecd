"""Messages between workers: order, channels, latency, and the links that they cross."""

import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from dlion_sim.protocol.knowledge.direct import WeightsRequest
from dlion_sim.protocol.messages import Contribution, Message, Weights
from dlion_sim.scenario import Flows, Network, from_data
from dlion_sim.simulation.delivery import Transport
from dlion_sim.simulation.event_queue import EventQueue
from dlion_sim.simulation.routing import Routing
from dlion_sim.simulation.tcp import IDEAL, TCP, SlowStart, TcpModel
from tests.simulation.agendas import finish

CLUSTER = {
    "clouds": [
        {"name": "a", "workers": [{"count": 2, "nic": {"up": "8 Mbps", "down": "80 Mbps"}}], "lan": {"rtt": "2 ms"}},
        {"name": "b", "workers": [{"count": 2, "nic": "80 Mbps"}]},
    ],
    "wan": {"bandwidth": "40 Mbps", "rtt": "100 ms", "paths": [{"from": "b", "to": "a", "bandwidth": "4 Mbps"}]},
}


DATA = {
    "name": "t",
    "duration": "1 s",
    "workload": {"dataset": "digits"},
    "cluster": CLUSTER,
    "system": "dlion",
    "network": {"tcp": "window"},  # what knows of losses
}


def routing(cluster) -> Routing:
    return Routing(from_data({**DATA, "cluster": cluster}).cluster)


class World:
    """A transport that records its events with their times."""

    def __init__(self, cluster=CLUSTER, tcp=IDEAL, scale=1.0):
        self.event_queue = EventQueue()
        self.sent, self.delivered, self.timed = [], [], []
        self.transport = Transport(
            self.event_queue,
            cluster if isinstance(cluster, Routing) else routing(cluster),
            SimpleNamespace(
                sent=self._on_sent,
                timed=lambda *event: self.timed.append(event),
                delivered=lambda receiver, message: self.delivered.append((message, receiver, self.event_queue.now)),
                changed=lambda: None,
            ),
            tcp=tcp,
            scale=scale,
        )

    def _on_sent(self, transfer):
        self.sent.append(
            (transfer.sender, transfer.receiver, self.event_queue.now, self.event_queue.now - transfer.began)
        )


def weights(sender: int, entries: int = 250_000) -> Message:
    return Message(sender, Weights(0), (torch.zeros(entries),))


def gradient(sender: int) -> Message:
    return Message(sender, Contribution(0, 32), (torch.zeros(250_000),))


def on_the_wire(*messages: Message) -> float:
    """Bytes on a link."""
    return sum(message.size for message in messages) * TCP.data


@pytest.mark.parametrize(
    ("sender", "receiver", "rate", "latency"),
    [
        (0, 2, 1e6, 0.05),  # 8 Mbps up, 40 Mbps path, 80 Mbps down
        (2, 0, 0.5e6, 0.05),  # The other direction has its own path, of 4 Mbps.
        (0, 1, 1e6, 0.001),  # Inside a cloud, only NICs and its latency count.
    ],
)
def test_a_message_takes_its_size_over_the_narrowest_link_and_half_a_round_trip(sender, receiver, rate, latency):
    world, message = World(), weights(sender)
    world.transport.send(receiver, message)
    finish(world.event_queue)
    duration = on_the_wire(message) / rate
    assert world.sent == [(sender, receiver, *[pytest.approx(duration, abs=1e-9)] * 2)]
    assert world.delivered == [(message, receiver, pytest.approx(duration + latency, abs=1e-9))]


def test_a_larger_model_is_charged_for_its_tensors_and_not_for_headers():
    world, message = World(scale=10.0), weights(0)
    world.transport.send(2, message)
    finish(world.event_queue)
    charged = len(message.header) + 10 * 4 * 250_000
    ((*_, duration),) = world.sent
    assert duration == pytest.approx(charged * TCP.data / 1e6, abs=1e-9)
    ((alone, shared),) = world.transport.bytes_per_second([(0, 2)])
    assert alone == shared == pytest.approx(1e6 / TCP.data / 10)  # of the bytes that the worker knows


def test_the_sent_part_of_messages_under_way_is_known():
    world, first, second = World(), weights(0), weights(0)
    for message in (first, second):
        world.transport.send(2, message)
    shares = []
    for seconds in (0.0, 0.25, 0.5):
        look = lambda: shares.extend(  # noqa: E731
            (transfer.began, size / transfer.message.size) for transfer, size in world.transport.under_way()
        )
        world.event_queue.after(seconds * on_the_wire(first) / 1e6, look)
    world.event_queue.after(1.25 * on_the_wire(first) / 1e6, look)
    finish(world.event_queue)
    began = on_the_wire(first) / 1e6
    assert shares == [
        (0, 0),
        (0, pytest.approx(0.25)),
        (0, pytest.approx(0.5)),
        (pytest.approx(began), pytest.approx(0.25)),
    ]
    assert not list(world.transport.under_way())


def test_messages_of_a_channel_queue_and_the_next_one_starts_when_the_last_byte_has_left():
    world, first, second = World(), weights(0), weights(0, entries=100)
    world.transport.send(2, first)
    world.transport.send(2, second)
    finish(world.event_queue)
    assert [message for message, _, _ in world.delivered] == [first, second]
    seconds = [each[3] for each in world.sent]
    assert seconds == pytest.approx([on_the_wire(first) / 1e6, on_the_wire(second) / 1e6], abs=1e-9)
    assert world.delivered[1][2] == pytest.approx(on_the_wire(first, second) / 1e6 + 0.05, abs=1e-9)


def test_control_messages_overtake_data():
    world, data, control = World(), gradient(0), Message(0, WeightsRequest())
    world.transport.send(2, data)
    world.transport.send(2, control)
    finish(world.event_queue)
    assert [message for message, _, _ in world.delivered] == [control, data]


@pytest.mark.parametrize("order", [[weights, gradient], [gradient, weights]], ids=["weights first", "gradient first"])
def test_weights_under_way_take_a_fair_share_of_a_link_as_over_a_second_connection(order):
    """And no more: gradients do not wait until they have left."""
    world = World()
    for make in (*order, gradient):
        world.transport.send(2, make(0))
    finish(world.event_queue)
    gradients = [time for message, _, time in world.delivered if isinstance(message.body, Contribution)]
    (merged,) = (time for message, _, time in world.delivered if isinstance(message.body, Weights))
    each = on_the_wire(gradient(0)) / 1e6
    assert gradients == pytest.approx([2 * each + 0.05, 3 * each + 0.05], abs=1e-3)
    assert merged == pytest.approx(2 * each + 0.05, abs=1e-3)


def test_all_flows_of_a_direction_share_its_path():
    world, messages = World(), [weights(2), weights(3)]
    for receiver, message in enumerate(messages):
        world.transport.send(receiver, message)
    finish(world.event_queue)
    each = on_the_wire(messages[0]) / 0.25e6 + 0.05
    assert [time for _, _, time in world.delivered] == pytest.approx([each, each], abs=1e-9)


def test_a_schedule_changes_a_link_under_a_message():
    nic = {"steps": {"0 s": "8 Mbps", "0.5 s": "0 bps", "2 s": "16 Mbps"}}
    world = World({"clouds": [{"name": "a", "workers": [{"nic": nic}, {"nic": "80 Mbps"}], "lan": {"rtt": "0 s"}}]})
    message = weights(0)
    world.transport.send(1, message)
    finish(world.event_queue)
    assert world.delivered[0][2] == pytest.approx(2 + (on_the_wire(message) - 0.5e6) / 2e6, abs=1e-9)


def test_true_bandwidths_are_those_of_a_flow_alone_and_of_all_together():
    world = World()
    pairs = [(0, 1), (0, 2), (2, 0), (3, 1)]
    # Alone: the NIC of 8 Mbps, twice, and the path of 4 Mbps. Together: worker 0's NIC is halved, and that path; each
    # less the acknowledgements of what comes the other way, of one flow there and of one here.
    back = TCP.acknowledgements
    up, path = np.linalg.solve([[2, back], [back, 2]], [1e6, 0.5e6])
    expected = [(1e6, up), (1e6, up), (0.5e6, path), (0.5e6, path)]
    on_links = [tuple(rate * TCP.data for rate in rates) for rates in world.transport.bytes_per_second(pairs)]
    assert on_links == [pytest.approx(rates, rel=1e-3) for rates in expected]


@pytest.mark.parametrize(("for_each_frame", "kept"), [(0, 1), (0.5, 0.78), (1, 0.57)])
def test_acknowledgements_load_the_return_route(for_each_frame, kept):
    """Whoever receives ten times what it can send loses a fifth of that to one acknowledgement for two frames."""
    workers = [{"nic": {"up": "8 Mbps", "down": "80 Mbps"}}, {"nic": "80 Mbps"}]
    tcp = TcpModel.of(Network(model=Flows(acknowledgements=for_each_frame)))
    world, message = World({"clouds": [{"name": "a", "workers": workers}]}, tcp), weights(0)
    world.transport.send(1, message)
    world.transport.send(0, weights(1, entries=20 * 250_000))  # for longer than the other
    finish(world.event_queue)
    back = for_each_frame * 66 / 1514
    rate, _ = np.linalg.solve([[1, back], [back, 1]], [1e6, 1e7])
    assert rate == pytest.approx(kept * 1e6, rel=0.01)
    assert world.sent[0][3] == pytest.approx(on_the_wire(message) / rate, rel=2e-3)


WINDOWS = TcpModel(window=64e3, slow_start=SlowStart(15e3, idle_restart=True))
LATENT = TcpModel(latency_factor=3.0)


@pytest.mark.parametrize("tcp", [IDEAL, WINDOWS, LATENT], ids=["ideal", "windows", "latency first"])
@pytest.mark.parametrize("seconds", [0.0, 0.04, 0.15, 0.3])
def test_cut_messages_are_never_delivered_and_all_are_returned(tcp, seconds):
    """Of both directions, every channel, what waits and what passes a latency first; others go on."""
    world, cuts = World(tcp=tcp), []
    for message, receiver in ((gradient(0), 2), (gradient(0), 2), (weights(0), 2), (gradient(2), 0), (gradient(1), 3)):
        world.transport.send(receiver, message)
    world.event_queue.after(seconds, lambda: cuts.append(world.transport.cut(2, 0)))
    finish(world.event_queue)
    [(begun, others)] = cuts
    assert len(begun) + others == 4
    assert [(message.sender, receiver) for message, receiver, _ in world.delivered] == [(1, 3)]
    assert all(0 <= carried < transfer.size for transfer, carried in begun)
    assert sum(carried for _, carried in begun) > 0 or seconds < 0.2
    assert not list(world.transport.under_way())


@pytest.mark.parametrize("tcp", [IDEAL, WINDOWS, LATENT], ids=["ideal", "windows", "latency first"])
def test_after_a_cut_a_pair_starts_with_a_new_connection(tcp):
    """As if nothing had been: with the first window again, and without what was on its way."""
    ends = []
    for cut in (True, False):
        world = World(tcp=tcp)
        if cut:
            world.transport.send(2, gradient(0))
            world.event_queue.after(0.2, lambda world=world: world.transport.cut(0, 2))
        world.event_queue.after(0.4, lambda world=world: world.transport.send(2, weights(0)))
        finish(world.event_queue)
        ends.append([(receiver, time) for _, receiver, time in world.delivered])
    assert ends[0] == [(2, pytest.approx(ends[1][0][1]))]


def test_sent_messages_are_delivered_after_a_cut():
    world, message = World(), weights(0)
    world.transport.send(2, message)
    world.event_queue.after(on_the_wire(message) / 1e6 + 0.01, lambda: world.transport.cut(0, 2))
    finish(world.event_queue)
    assert [each for each, _, _ in world.delivered] == [message]


def test_a_message_that_crosses_no_link_can_be_cut_only_in_its_instant():
    server = Routing(from_data(DATA).cluster, [0])
    world = World(server)
    world.transport.send(4, weights(0))
    assert world.transport.cut(0, 4) == ([], 1)
    finish(world.event_queue)
    assert not world.delivered


def memory(workers: int) -> tuple[float, float]:
    """Bytes for each message, where all send to all, half of it over one path: at most, and when all is over."""
    cloud = {"workers": [{"count": workers // 2, "nic": "10 Mbps"}]}
    cluster = routing(
        {"clouds": [{"name": name, **cloud} for name in "ab"], "wan": {"bandwidth": "1 Gbps", "rtt": "0 ms"}}
    )
    messages = [Message(worker, WeightsRequest()) for worker in range(workers)]
    tracemalloc.start()
    event_queue = EventQueue()
    transport = Transport(
        event_queue,
        cluster,
        SimpleNamespace(
            sent=lambda *_: None,
            timed=lambda *_: None,
            delivered=lambda *_: None,
            changed=lambda: None,
        ),
    )
    for message in messages:
        for receiver in range(workers):
            if receiver != message.sender:
                transport.send(receiver, message)
    finish(event_queue)
    present, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most / (workers * (workers - 1)), present / (workers * (workers - 1))


def test_messages_under_way_and_idle_pairs_take_little_memory():
    memory(4)  # compiles
    for workers in (64, 128):
        under_way, idle = memory(workers)
        assert under_way < 1200
        assert idle < 500
