"""Links with other queues than emulations have by default: one for all, or some of a given size."""

import re

import pytest

from dlion_sim.emulation.queueing import Queueing
from dlion_sim.emulation.shaping import FairQueues, MarkingQueues, OneQueue
from dlion_sim.scenario import Flows, Packets
from emulation.traffic import flows
from tests.emulation.test_network import made, mbps


@pytest.mark.emulation
def test_one_queue_for_all_limits_them_together():
    with made(Queueing(Flows(), fair=False)) as network:
        with flows(network, (0, 2), (1, 2)) as measure:
            assert sum(mbps(measure(2.0))) == pytest.approx(10, rel=0.1)
        (path,) = (link for link in network.links if link.name == "a to b")
        with flows(network, (0, 2)) as measure:
            path.set(5e6)
            measure(0.5)
            assert mbps(measure()) == [pytest.approx(5, rel=0.1)]


@pytest.mark.emulation
def test_queues_of_flows_have_the_size_that_they_are_given():
    """That of a host's own NIC is larger than anything that waits there."""
    with made(Queueing(Packets(fair=True, buffer="40 packets"))) as network:
        limits = {
            link.name: set(re.findall(r"limit (\w+)", link.node.cmd(f"tc qdisc show dev {link.device}")))
            for link in network.links
        }
    assert "60560b" in limits["a to b"] & limits["a/0 down"]
    assert "60560b" not in limits["a/0 up"]


FAIR = Packets(fair=True, buffer="30 packets", delays="receivers")
QUEUED = Flows(queue="30 packets")
PLAIN = Packets(buffer="20 packets")


@pytest.mark.parametrize(
    ("model", "fair", "at_nic", "behind", "told"),
    [
        (Flows(), True, FairQueues([]), FairQueues([]), {"queues": "fair"}),
        (Flows(), False, OneQueue(), OneQueue(), {"queues": "fifo"}),
        (QUEUED, True, *[FairQueues([], 30 * 1514)] * 2, {"queues": "fair", "buffer": 30 * 1514}),
        (QUEUED, False, OneQueue(), OneQueue(), {"queues": "fifo"}),
        (FAIR, True, FairQueues([], 1e6), FairQueues([], 30 * 1514), {"queues": "fair", "buffer": 30 * 1514}),
        (PLAIN, True, OneQueue(1e6), OneQueue(20 * 1514), {"queues": "fifo", "buffer": 20 * 1514}),
    ],
)
def test_queues_are_what_the_model_says_but_at_a_hosts_own_nic(model, fair, at_nic, behind, told):
    queueing = Queueing(model, fair)
    assert queueing.at_link([], is_host=True) == at_nic
    assert queueing.at_link([], is_host=False) == behind
    assert queueing.manifest == {"delay": "transport", **told}


def test_queues_that_mark_are_there_where_the_kernel_has_them():
    queueing = Queueing(PLAIN, marks=True)
    assert queueing.at_link([], is_host=False) == MarkingQueues(PLAIN)
    assert queueing.at_link([], is_host=True) == OneQueue(1e6)
    assert queueing.manifest["queues"] == "marking"


@pytest.mark.parametrize("can", [False, True])
def test_the_kernel_delays_where_it_can_and_receivers_do_not(monkeypatch, can):
    monkeypatch.setattr("dlion_sim.emulation.queueing.has_netem", lambda: can)
    monkeypatch.setattr("dlion_sim.emulation.queueing.has_red", lambda: can)
    delays = [Queueing.of(model).is_delayed for model in (FAIR, PLAIN, Flows())]
    assert delays == [False, can, can]
    assert Queueing.of(PLAIN).marks == can
    assert Queueing(Flows(), is_delayed=True).manifest["delay"] == "kernel"
