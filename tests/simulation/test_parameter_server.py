"""Parameter servers: against Baseline, against closed forms, and refused where they make no sense."""

import numpy as np
import pytest

from dlion_sim.errors import InputError
from dlion_sim.simulation import simulate
from dlion_sim.simulation.tcp import TCP
from tests.simulation.scenarios import digits

EQUAL = {
    "clouds": [{"name": "a", "workers": [{"count": 3, "compute": "8 cores", "nic": "100 Mbps"}], "lan": {"rtt": "0 s"}}]
}


def losses(run):
    return run.iterations().pivot(index="iteration", columns="worker", values="loss").to_numpy()


def system(*hosts, **exchange):
    return {
        "name": "parameter_server",
        "exchange": exchange,
        "topology": {"kind": "parameter_server", "hosts": list(hosts)},
    }


OWN = {"cloud": "a", "nic": "50 Mbps"}


@pytest.mark.parametrize("hosts", [[0], [2], [0, 1, 2], [1, 0], [OWN], [OWN, 1, OWN]])
def test_a_synchronous_server_is_baseline_wherever_it_is_and_however_sharded(tmp_path, hosts):
    def run(name, spec):
        return simulate(digits("iterations=30", cluster=EQUAL, system=spec, duration=None), tmp_path / name)

    server, baseline = run("server", system(*hosts)), run("baseline", "baseline")
    np.testing.assert_allclose(losses(server), losses(baseline), rtol=1e-4)
    assert server.summary["accuracy"]["std"] == 0


def test_a_synchronous_iteration_is_computation_and_the_servers_nic_twice(tmp_path):
    """Two gradients in over one NIC, two answers out of it; the worker on the server's machine uses no link."""
    run = simulate(digits("iterations=1", cluster=EQUAL, system=system(0), duration=None), tmp_path / "run")
    sent = run.links().set_index(["sender", "receiver"])["bytes"]
    assert set(sent.index) == {(1, 3), (2, 3), (3, 1), (3, 2)}
    expected = 0.01 + 0.04 * 16 / 8 + (sent[1, 3] + sent[2, 3] + sent[3, 1] + sent[3, 2]) * TCP.data * 8 / 100e6
    times = run.iterations().set_index("worker")["virtual_time"]
    assert times[1] == pytest.approx(expected, abs=1e-6)


def test_a_server_on_a_machine_of_its_own_has_its_own_nic(tmp_path):
    run = simulate(digits("iterations=1", cluster=EQUAL, system=system(OWN), duration=None), tmp_path / "run")
    sent = run.links().groupby("receiver")["bytes"].sum()
    expected = 0.01 + 0.04 * 16 / 8 + (sent[3] + sent[[0, 1, 2]].sum()) * TCP.data * 8 / 50e6
    assert run.iterations()["virtual_time"].max() == pytest.approx(expected, abs=1e-6)


def test_shards_spread_the_traffic(tmp_path):
    def seconds(name, *hosts):
        scenario = digits("iterations=5", cluster=EQUAL, system=system(*hosts), duration=None)
        return simulate(scenario, tmp_path / name).iterations()["virtual_time"].max()

    assert seconds("sharded", 0, 1, 2) < seconds("one", 0)


def test_an_asynchronous_server_waits_for_nobody(tmp_path):
    slow = [{"name": "a", "workers": [{"count": 2, "compute": "24 cores"}, {"compute": "2 cores"}]}]
    run = simulate(
        digits(cluster={"clouds": slow}, system=system(0, asynchronous=True), duration="8 s"), tmp_path / "run"
    )
    iterations = run.summary["iterations"]["per_worker"]
    assert iterations[0] > 5 * iterations[2] > 0
    assert run.summary["accuracy"]["mean"] > 0.8


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"name": "dlion", "topology": "parameter_server"}, "system.topology"),
        ({"name": "parameter_server", "topology": "ring"}, "system.topology"),
        ({"name": "hop", "synchronization": {"max_gap": 3}, "topology": "parameter_server"}, "system.topology"),
        ({"name": "parameter_server", "batching": "weighted_dynamic"}, "system.batching"),
        (system(0, 0), "system.topology.hosts.1"),
        (system(3), "system.topology.hosts.0"),
        (system({"cloud": "b"}), "system.topology.hosts.0.cloud"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(tmp_path, spec, path):
    with pytest.raises(InputError) as fault:
        simulate(digits(cluster=EQUAL, system=spec), tmp_path / "run")
    assert fault.value.path == path
    assert not (tmp_path / "run").exists()
