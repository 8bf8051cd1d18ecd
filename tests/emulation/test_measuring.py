"""Live nodes measure an emulated network: what they find is what its scenario states."""

from __future__ import annotations

import pytest
import yaml

from dlion_sim.calibration import network_block
from dlion_sim.emulation import measure_emulated
from dlion_sim.errors import InputError
from dlion_sim.scenario import Cluster, Network
from tests.emulation.traces import traces
from tests.simulation.scenarios import digits

RATES = {
    "a": {"b": "50 Mbps", "c": "20 Mbps", "d": "30 Mbps"},
    "b": {"a": "10 Mbps", "c": "5 Mbps", "d": "25 Mbps"},
    "c": {"a": "35 Mbps", "b": "15 Mbps", "d": "8 Mbps"},
    "d": {"a": "40 Mbps", "b": "6 Mbps", "c": "45 Mbps"},
}
RTTS = {"a": {"b": "0 ms", "c": "20 ms", "d": "40 ms"}, "b": {"c": "30 ms", "d": "60 ms"}, "c": {"d": "50 ms"}}
NIC = {"up": "12 Mbps", "down": "100 Mbps"}
"""Of d: what it sends is limited by its NIC, but for what goes to b."""
CLUSTER = {
    "clouds": [
        *({"name": name, "workers": [{}]} for name in "abc"),
        {"name": "d", "workers": [{"nic": NIC}, {}]},
    ],
    "wan": {"matrix": RATES, "rtt_matrix": RTTS},
}
IN_NODES = 0.002
"""Seconds that a message there and back may take in the nodes themselves, which are on a machine that is shared."""


@pytest.mark.emulation
def test_a_mesh_is_measured_as_it_is_stated(tmp_path):
    before = traces()
    scenario = digits(cluster=CLUSTER, system="baseline")
    outcome = measure_emulated(scenario, tmp_path / "net.yaml", seconds=3.0)
    assert outcome.failed is None
    assert traces() == before
    block = network_block(tmp_path / "net-bandwidth.csv", tmp_path / "net-rtt.csv")
    found = Cluster.model_validate(block["cluster"])
    for sender in scenario.cluster.clouds:
        for receiver in scenario.cluster.clouds:
            if sender is receiver:
                continue
            path = sender.name, receiver.name
            (rate, rtt), (capacity, stated_rtt) = found.wan_path(*path), scenario.cluster.wan_path(*path)
            stated = min(capacity.value_at(0), 12e6 if sender.name == "d" else 100e6)
            assert rate.value_at(0) == pytest.approx(stated, rel=0.05), path
            assert 0.99 * stated_rtt <= rtt <= 1.05 * stated_rtt + IN_NODES, path
    network = yaml.safe_load((tmp_path / "net.yaml").read_text())["network"]
    # Linux acknowledges every second full frame, and some alone.
    assert 0.45 < Network.model_validate(network).model.acknowledgements < 0.9


@pytest.mark.emulation
def test_a_single_cloud_has_no_paths(tmp_path):
    alone = {"clouds": [{"name": "a", "workers": [{"count": 2}]}]}
    with pytest.raises(InputError, match=r"cluster\.clouds: there is a single one"):
        measure_emulated(digits(cluster=alone, system="baseline"), tmp_path / "net.yaml", seconds=1.0)
