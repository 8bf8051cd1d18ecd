"""Messages between participants over packets: when they leave, are there, and are known to be."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from dlion_sim.assembly.transfer import PROBE_BYTES
from dlion_sim.scenario import Packets, Reliable
from dlion_sim.simulation.event_queue import EventQueue
from dlion_sim.simulation.packets.delivery import PacketDelivery
from dlion_sim.simulation.routing import Routing
from tests.simulation.agendas import finish
from tests.simulation.test_delivery import CLUSTER, gradient, routing, weights
from tests.simulation.test_routing import leaf_spine

FRAME, SEGMENT, ACKNOWLEDGEMENT = 1514, 1448, 66

RELIABLE = Reliable()


class World:
    """A transport that records its events with their times."""

    def __init__(self, cluster=CLUSTER, transport=RELIABLE, **model):
        self.event_queue = EventQueue()
        self.sent, self.timed, self.delivered = [], [], []
        self.routing = cluster if isinstance(cluster, Routing) else routing(cluster)
        model = Packets(buffer="1 MB", mark_above="1 MB", **model)
        self.transport = PacketDelivery(
            self.event_queue,
            self.routing,
            SimpleNamespace(
                sent=lambda transfer: self.sent.append((transfer.message, self.event_queue.now)),
                timed=lambda transfer, seconds, left: self.timed.append(
                    (transfer.message, self.event_queue.now, seconds, left)
                ),
                delivered=lambda receiver, message: self.delivered.append((message, receiver, self.event_queue.now)),
                changed=lambda: None,
            ),
            model=model,
            transport=transport,
        )


def test_a_short_message_takes_each_link_one_after_another_and_half_a_round_trip():
    """1000 bytes: 8 Mbps up, 50 ms, 40 Mbps path, 80 Mbps down; and 66 bytes back over 80, 4 and 80 Mbps."""
    world, message = World(), weights(0, 200)
    world.transport.send(2, message)
    finish(world.event_queue)
    size = message.size + 66
    there = size / 1e6 + 0.05 + size / 5e6 + size / 10e6
    known = there + 66 / 10e6 + 0.05 + 66 / 0.5e6 + 66 / 10e6
    assert world.sent == [(message, pytest.approx(size / 1e6, rel=1e-9))]
    assert world.delivered == [(message, 2, pytest.approx(there, rel=1e-9))]
    assert [(each[1], each[3]) for each in world.timed] == [(pytest.approx(known), pytest.approx(size / 1e6))]


def test_receivers_add_the_latency_that_links_do_not_have():
    """As above, but half a round trip later than the links take, of which the sender learns nothing."""
    world, message = World(delays="receivers"), weights(0, 200)
    world.transport.send(2, message)
    finish(world.event_queue)
    size = message.size + 66
    there = size / 1e6 + size / 5e6 + size / 10e6
    assert world.delivered == [(message, 2, pytest.approx(there + 0.05, rel=1e-9))]
    [(_, known, seconds, _)] = world.timed
    assert [known, seconds] == pytest.approx([there + 66 / 10e6 + 66 / 0.5e6 + 66 / 10e6] * 2)


def test_links_are_timed_without_the_round_trip_in_which_acknowledgements_come():
    """A megabyte over 1 MB/s with 100 ms, from one acknowledgement to another: what slow start costs remains."""
    world, message = World(), gradient(0)
    world.transport.send(2, message)
    finish(world.event_queue)
    [(_, now, seconds, _)] = world.timed
    assert now - 0.12 < seconds < now - 0.08
    assert message.size / seconds == pytest.approx(1e6 * SEGMENT / FRAME, rel=0.25)


def test_a_probe_follows_a_links_first_message_if_that_is_short():
    """Over 8 Mbps it has left when that has, and has its part of the time that both take."""
    world = World(delays="receivers")
    first, second = (type(gradient(0))(0, gradient(0).body, (torch.zeros(entries),)) for entries in (10, 2000))
    for message in (first, second):
        world.transport.send(2, message)
    finish(world.event_queue)
    up = 1e6
    probed = (first.size + PROBE_BYTES) * FRAME / SEGMENT
    [(_, left), (_, then)] = world.sent
    assert left == pytest.approx(probed / up, rel=0.01)
    assert then - left == pytest.approx(second.size * FRAME / SEGMENT / up, rel=0.01)
    [(_, _, seconds, when), (_, _, others, _)] = world.timed
    assert when == left
    assert first.size / seconds == pytest.approx(second.size / others, rel=0.3)
    delivered = {message: now for message, _, now in world.delivered}
    assert delivered[first] < left + 0.05 < delivered[second]


@pytest.mark.parametrize("message", [gradient(0), weights(0, 10)])
def test_other_messages_have_no_probe(message):
    world = World()
    world.transport.send(2, message)
    finish(world.event_queue)
    first = world.routing.route(0, 2).links[0]
    carried = world.transport._network.counters()[first]["carried"].sum()
    assert carried == message.size + 66 * -(-message.size // SEGMENT)


def test_messages_of_a_channel_follow_one_another_and_channels_share():
    world = World()
    sent = [weights(0), gradient(0), gradient(0)]
    for message in sent:
        world.transport.send(1, message)
    begun = {id(transfer.message) for transfer, _ in world.transport.under_way()}
    assert begun == {id(sent[0]), id(sent[1])}
    finish(world.event_queue)
    place = {id(message): number for number, message in enumerate(sent)}
    order = [place[id(message)] for message, *_ in world.delivered]
    assert sorted(order) == [0, 1, 2]
    assert order.index(1) < order.index(2)
    ends = {place[id(message)]: left for message, _, _, left in world.timed}
    assert ends[0] == pytest.approx(2 * sent[0].size * FRAME / SEGMENT / 1e6, rel=0.02)
    assert ends[2] == pytest.approx(3 * sent[0].size * FRAME / SEGMENT / 1e6, rel=0.02)


def test_the_sent_part_is_counted():
    world, message = World(), gradient(0)
    world.transport.send(1, message)
    world.event_queue.after(0.3, lambda: seen.extend(world.transport.under_way()))
    seen = []
    finish(world.event_queue)
    [(_, size)] = seen
    assert size == pytest.approx(0.3e6 * SEGMENT / FRAME, rel=0.02)
    assert not [*world.transport.under_way()]


def test_a_message_is_under_way_until_it_is_acknowledged():
    """A short message is there after 52 ms, which the sender knows after 102 ms."""
    world, message, seen = World(), weights(0, 200), []
    world.transport.send(2, message)
    world.event_queue.after(0.08, lambda: seen.extend(world.transport.under_way()))
    finish(world.event_queue)
    [(transfer, size)] = seen
    assert [world.delivered[0][2] < 0.08 < world.timed[0][1], size] == [True, message.size]
    assert transfer.loss.seconds == pytest.approx(world.delivered[0][2])


def test_resent_bytes_are_reported():
    lossy = {**CLUSTER, "wan": {**CLUSTER["wan"], "loss": 0.02}}
    world, message = World(lossy), gradient(0)
    transfers = []
    world.transport._listener.timed = lambda transfer, *_: transfers.append(transfer)
    world.transport.send(2, message)
    finish(world.event_queue)
    [transfer] = transfers
    assert transfer.loss.resent == pytest.approx(0.02 * message.size, rel=0.5)
    assert (transfer.loss.lost, transfer.loss.saved) == (0, 0)
    [(_, _, there)] = world.delivered
    assert transfer.loss.seconds == pytest.approx(there)


@pytest.mark.parametrize("paths", ["hash", "spray"])
def test_spines_are_taken_by_the_scenarios_setting(paths):
    world = World(leaf_spine(), paths=paths)
    message = gradient(0)
    receiver = next(each for each in range(1, 8) if len(world.routing.paths(0, each)) > 1)
    world.transport.send(receiver, message)
    finish(world.event_queue)
    rows = {row.port: row.bytes for row in world.transport.queues()}
    carried = [rows[name] for name in world.routing.names if "leaf 0 -> spine" in name]
    assert np.count_nonzero(carried) == (2 if paths == "spray" else 1)


def test_switches_have_all_links_except_those_of_sending_machines():
    for routes in (routing(CLUSTER), leaf_spine()):
        links = [link for switch in routes.switches for link in switch]
        assert sorted(links) == sorted({*range(len(routes.names))} - routes.uplinks)


def test_true_bandwidths_are_fair_shares_bound_by_the_receive_window():
    world = World()
    alone, shared = world.transport.bytes_per_second([(0, 2), (1, 3)])[0]
    assert (alone, shared) == pytest.approx((1e6 * SEGMENT / FRAME, 1e6 * SEGMENT / FRAME), rel=0.01)
    [(alone, _)] = World(transport=Reliable(receive_window="14480 B")).transport.bytes_per_second([(0, 2)])
    assert alone == pytest.approx(144_800)


def test_a_restored_state_of_other_links_or_messages_is_refused():
    world = World()
    world.transport.send(1, gradient(0))
    world.transport.check_restored()
    world.transport._transfers[10**6] = world.transport._transfers[0]
    with pytest.raises(ValueError, match="another network"):
        world.transport.check_restored()
    other = World()
    other.transport._routing = leaf_spine()
    with pytest.raises(ValueError, match="another network"):
        other.transport.check_restored()
