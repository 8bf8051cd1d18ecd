"""Links with other queues than emulations have by default: one for all, or some of a given size."""

import re

import pytest

from emulation.traffic import flows
from tests.emulation.test_network import made, mbps


@pytest.mark.emulation
def test_one_queue_for_all_limits_them_together():
    with made(fair=False) as network:
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
    with made(buffer=40 * 1514) as network:
        limits = {
            link.name: set(re.findall(r"limit (\w+)", link.node.cmd(f"tc qdisc show dev {link.device}")))
            for link in network.links
        }
    assert "60560b" in limits["a to b"] & limits["a/0 down"]
    assert "60560b" not in limits["a/0 up"]
