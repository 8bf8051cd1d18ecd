"""What all nodes work out for themselves is the same for the same run, and for no other."""

from dataclasses import replace
from pathlib import Path

import pytest

from dlion_sim.errors import InputError
from dlion_sim.live.place import Place
from dlion_sim.live.setting import Setting
from dlion_sim.live.sockets import Address
from dlion_sim.scenario import dump, from_data
from dlion_sim.scenario.yaml_text import read_yaml
from tests.simulation.scenarios import digits

SERVERS = {"kind": "parameter_server", "hosts": [1, {"cloud": "east"}]}


def test_a_run_is_told_from_any_other():
    same = Setting.of(digits()).digest
    assert len(same) == 32
    assert same == Setting.of(from_data(read_yaml(dump(Setting.of(digits()).scenario)))).digest
    others = [digits(seed=2), digits("duration=5 s"), digits("system.exchange.n_min=2"), digits(system="baseline")]
    assert len({same, *(Setting.of(other).digest for other in others)}) == 5


def test_workers_come_first_then_servers_each_where_it_is():
    setting = Setting.of(digits(system={"name": "parameter_server", "topology": SERVERS}))
    assert (setting.workers, setting.participants) == (3, 5)
    assert [list(setting.neighbours(rank)) for rank in range(5)] == [[3, 4]] * 3 + [[0, 1, 2]] * 2
    assert [setting.same_machine(rank) for rank in range(5)] == [set(), {3}, set(), {1}, set()]


def test_what_only_a_simulation_knows_is_refused():
    system = {"name": "dlion", "exchange": {"bandwidth": "oracle_pair"}}
    with pytest.raises(InputError, match="only a simulation") as refused:
        Setting.of(digits(system=system)).worker(0)
    assert refused.value.path == "system.exchange.bandwidth"


def test_a_run_that_might_never_end_is_refused():
    dead = {"steps": {"0 s": "8 cores", "1 s": "0 cores"}}
    cluster = {"clouds": [{"name": "a", "workers": [{}, {"compute": dead}]}]}
    setting = Setting.of(digits(cluster=cluster, duration=None, iterations=5))
    place = Place(0, [Address("a", 1), Address("b", 2)], b"", Path())
    with pytest.raises(InputError, match="the cores of a/1 are gone for good"):
        place.check(setting)
    replace(place, paced=False).check(setting)


@pytest.mark.parametrize(
    ("text", "address"),
    [("10.0.0.1:7000", ("10.0.0.1", 7000)), (" host:1 ", ("host", 1)), ("[::1]:65535", ("::1", 65535))],
)
def test_addresses_are_read_and_written(text, address):
    assert Address.parse(text) == address
    assert str(Address.parse(text)) == text.strip()


@pytest.mark.parametrize("text", ["", "host", "host:", ":7000", "host:0", "host:65536", "host:-1", "host:x"])
def test_other_words_are_no_addresses(text):
    with pytest.raises(InputError, match="is no address"):
        Address.parse(text)
