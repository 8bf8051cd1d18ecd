"""What a node is told: what fits no run is refused before anything else happens."""

from dataclasses import replace
from pathlib import Path

import pytest

from dlion_sim.assembly import Setting
from dlion_sim.errors import InputError
from dlion_sim.live.connection import Address
from dlion_sim.live.node_config import NodeConfig
from tests.live.mesh import identity_of
from tests.simulation.scenarios import digits


def test_a_run_that_might_never_end_is_refused():
    dead = {"steps": {"0 s": "8 cores", "1 s": "0 cores"}}
    cluster = {"clouds": [{"name": "a", "workers": [{}, {"compute": dead}]}]}
    setting = Setting.of(digits(cluster=cluster, duration=None, iterations=5))
    config = NodeConfig(0, [Address("a", 1), Address("b", 2)], identity_of(0), Path())
    with pytest.raises(InputError, match="the cores of a/1 are gone for good"):
        config.check(setting)
    replace(config, paced=False).check(setting)


@pytest.mark.parametrize(
    ("text", "address"),
    [("10.0.0.1:7000", ("10.0.0.1", 7000)), (" host:1 ", ("host", 1)), ("[::1]:65535", ("::1", 65535))],
)
def test_addresses_are_read_and_written(text, address):
    assert Address.parse(text) == address
    assert str(Address.parse(text)) == text.strip()


@pytest.mark.parametrize(
    "text", ["", "host", "host:", ":7000", "host:0", "host:65536", "host:-1", "host:x", "a..b:1", f"{'a' * 64}:1"]
)
def test_other_words_are_no_addresses(text):
    with pytest.raises(InputError, match="is no address"):
        Address.parse(text)
