"""Links as the kernel makes them: their rates, who shares them, how they change, and that nothing of them is left."""

from contextlib import contextmanager

import pytest

from dlion_sim.assembly import server_hosts
from dlion_sim.emulation.leftovers import workplace
from dlion_sim.emulation.network import Network
from dlion_sim.emulation.queueing import Queueing
from dlion_sim.errors import InputError
from dlion_sim.live.connection import WEIGHTS_TOS
from dlion_sim.scenario import Flows, from_data
from dlion_sim.scenario.system import ServerHost
from emulation.traffic import flows, round_trip
from tests.emulation.traces import traces
from tests.simulation.scenarios import digits

CLOUDS = [
    {
        "name": "a",
        "workers": [{"nic": {"up": "20 Mbps", "down": "8 Mbps"}}, {"nic": "40 Mbps"}],
    },
    {"name": "b", "workers": [{"nic": "100 Mbps"}]},
    {"name": "c", "workers": [{"count": 2}], "lan": {"bandwidth": "12 Mbps", "rtt": "4 ms"}},
]
WAN = {
    "bandwidth": "unlimited",
    "rtt": "30 ms",
    "paths": [{"from": "a", "to": "b", "bandwidth": "10 Mbps"}, {"from": "b", "to": "a", "bandwidth": "30 Mbps"}],
}
CLUSTER = from_data(
    {
        "name": "links",
        "duration": "1 s",
        "workload": {"dataset": "digits"},
        "cluster": {"clouds": CLOUDS, "wan": WAN},
        "system": "dlion",
    }
).cluster
BY_FLOWS = Queueing(Flows())


@contextmanager
def made(queueing=BY_FLOWS):
    before = traces()
    with workplace(), Network(CLUSTER, queueing=queueing) as network:
        yield network
    assert traces() == before


@pytest.fixture(scope="module")
def network():
    with made() as network:
        yield network


def mbps(rates):
    """What TCP gets through, in Mbps of whole frames."""
    return [rate / 1e6 * 1514 / 1448 for rate in rates]


@pytest.mark.emulation
@pytest.mark.parametrize(
    ("sender", "receiver", "rate"),
    [
        (0, 1, 20),  # the sender's NIC
        (1, 0, 8),  # the receiver's
        (1, 2, 10),  # the WAN path
        (2, 1, 30),  # which is another one the other way
        (3, 4, 12),  # the LAN
        (3, 2, 100),  # which has no part in what leaves the cloud
    ],
)
def test_what_is_narrowest_limits_a_flow(network, sender, receiver, rate):
    with flows(network, (sender, receiver)) as measure:
        assert mbps(measure()) == [pytest.approx(rate, rel=0.1)]


@pytest.mark.emulation
@pytest.mark.parametrize(("pairs", "rate"), [([(0, 2), (1, 2)], 10), ([(3, 4), (4, 3)], 12)])
def test_all_flows_of_a_direction_share_a_path_and_all_of_a_cloud_its_lan(network, pairs, rate):
    with flows(network, *pairs) as measure:
        found = mbps(measure(2.0))
    assert sum(found) == pytest.approx(rate, rel=0.1)
    assert min(found) > 0.15 * rate


@pytest.mark.emulation
def test_flows_share_max_min_fairly_whatever_else_they_cross(network):
    # The path from a to b has 10 Mbps for two of them, the host in b 100 to receive: what comes from c is not held up.
    with flows(network, (0, 2), (1, 2), (3, 2)) as measure:
        assert mbps(measure(2.0)) == [pytest.approx(rate, rel=0.1) for rate in (5, 5, 90)]
    # Of 20 Mbps up, the flow that 8 Mbps hold back further on leaves 12 to the other one.
    with flows(network, (1, 0), (1, 2)) as measure:
        assert mbps(measure(2.0)) == [pytest.approx(rate, rel=0.1) for rate in (8, 10)]


@pytest.mark.emulation
def test_weights_share_a_link_with_all_else_that_their_pair_sends(network):
    # Each of the three connections has a third, as in the simulator; one queue for the pair would leave them a quarter.
    with flows(network, (0, 2), (0, 2, WEIGHTS_TOS), (1, 2)) as measure:
        assert mbps(measure(2.0)) == [pytest.approx(10 / 3, rel=0.1)] * 3


@pytest.mark.emulation
def test_a_link_changes_while_it_is_used_and_goes_on_after_an_outage(network):
    (up,) = (link for link in network.links if link.name == "a/0 up")
    try:
        with flows(network, (0, 1)) as measure:
            for rate in (5, 15):
                up.set(rate * 1e6)
                measure(0.5)
                assert mbps(measure()) == [pytest.approx(rate, rel=0.1)]
            up.set(0.0)
            measure(0.3)
            assert mbps(measure())[0] < 0.1
            up.set(20e6)
            measure(2.0)
            assert mbps(measure()) == [pytest.approx(20, rel=0.1)]
    finally:
        up.set(20e6)


@pytest.mark.emulation
def test_a_short_message_does_not_wait_long_behind_long_ones(network):
    assert round_trip(network, 1, 2) < 0.005
    with flows(network, (1, 2), (1, 2)):
        assert round_trip(network, 1, 2) < 0.04


@pytest.mark.emulation
def test_each_direction_that_limits_is_a_link(network):
    names = {link.name for link in network.links}
    assert names == {f"{worker} {way}" for worker in ("a/0", "a/1", "b/0", "c/0", "c/1") for way in ("up", "down")} | {
        "c lan",
        "a to b",
        "b to a",
    }


def test_participants_share_machines_as_the_scenario_says():
    servers = [1, ServerHost(cloud="b"), ServerHost(cloud="b")]
    network = Network(CLUSTER, servers, queueing=BY_FLOWS)
    addresses = [network.address(rank) for rank in range(8)]
    assert addresses[:5] == ["10.0.0.1", "10.0.0.2", "10.1.0.3", "10.2.0.4", "10.2.0.5"]
    assert addresses[5:] == ["10.0.0.2", "10.1.0.6", "10.1.0.7"]


def test_hosts_of_parameter_servers_are_checked():
    def scenario(*hosts):
        return digits(system={"name": "parameter_server", "topology": {"kind": "parameter_server", "hosts": [*hosts]}})

    assert server_hosts(digits(system="baseline")) == ()
    assert server_hosts(scenario(0)) == [0]
    with pytest.raises(InputError, match=r"hosts.0"):
        server_hosts(scenario(99))
    with pytest.raises(InputError, match=r"hosts.0.cloud: there is no cloud 'nowhere'"):
        server_hosts(scenario({"cloud": "nowhere"}))


def test_what_the_network_does_not_delay_is_told():
    network = Network(CLUSTER, [1], queueing=BY_FLOWS)
    assert network.missing_delay(0, 2) == network.missing_delay(2, 0) == pytest.approx(0.015)
    assert network.missing_delay(3, 4) == pytest.approx(0.002)
    assert network.missing_delay(1, 5) == 0
    assert network.missing_delay(0, 1) == 0  # A tenth of a millisecond.
    by_kernel = Network(CLUSTER, queueing=Queueing(Flows(), is_delayed=True))
    assert (by_kernel.delay(0, 2), by_kernel.delay(3, 4)) == (pytest.approx(0.015), pytest.approx(0.002))
    assert (by_kernel.missing_delay(0, 2), by_kernel.missing_delay(3, 4)) == (0, pytest.approx(0.002))


def test_losses_are_refused_as_no_emulated_link_has_them():
    cluster = digits("cluster.wan.loss=0.01", "network.tcp=window").cluster
    with pytest.raises(InputError, match=r"cluster\.wan\.loss: losses cannot be emulated; allowed: 0"):
        Network(cluster, queueing=BY_FLOWS)


def test_fabrics_are_refused_as_an_emulated_cloud_has_one_switch():
    cluster = digits("cluster.clouds.0.lan={fabric: {leaves: 2, spines: 2}}").cluster
    with pytest.raises(InputError, match=r"cluster\.clouds\.0\.lan\.fabric: a fabric cannot be emulated"):
        Network(cluster, queueing=BY_FLOWS)
