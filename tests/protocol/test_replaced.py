"""The differences of a system from the composition of its name."""

import sys

import pytest

from dlion_sim.assembly import Setting, manifest_fields
from dlion_sim.errors import InputError
from dlion_sim.protocol.compose import compose
from dlion_sim.protocol.systems import SYSTEMS
from dlion_sim.scenario import SystemSpec, dump, from_data
from dlion_sim.yaml_text import read_yaml
from tests.simulation.scenarios import digits


def replaced(system):
    return dict(compose(SystemSpec.model_validate(system)).replaced)


@pytest.mark.parametrize("name", sorted(SYSTEMS))
def test_a_named_system_with_all_its_defaults_has_nothing_replaced(name):
    assert replaced(name) == {}
    spec = compose(SystemSpec(name=name)).spec
    assert replaced(spec.model_dump()) == {}


@pytest.mark.parametrize(
    ("system", "found"),
    [
        ({"name": "dlion", "batching": {"weights": "share"}}, {"batching.weights": "share"}),
        ({"name": "dlion", "batching": {"weights": "ratio"}, "exchange": {"n": 10}}, {"exchange.n": "10"}),
        ({"name": "dlion", "batching": "fixed"}, {"batching": "fixed"}),
        ({"name": "dlion", "batching": {"profile_batch_sizes": [4, 8]}}, {"batching.profile_batch_sizes": "[4, 8]"}),
        # A kind's own defaults are not the composition's, which has a bound of 5.
        ({"name": "dlion", "synchronization": {"staleness": 0}}, {"synchronization.staleness": "0"}),
        (
            {"name": "baseline", "synchronization": {"kind": "bounded_staleness", "staleness": 7}},
            {"synchronization": "bounded_staleness", "synchronization.staleness": "7"},
        ),
        ({"name": "dpsgd", "topology": "torus"}, {"topology": "torus"}),
        (
            {"name": "dpsgd", "topology": {"kind": "regular", "degree": 2}},
            {"topology": "regular", "topology.degree": "2"},
        ),
        (
            {"name": "parameter_server", "topology": {"kind": "parameter_server", "hosts": [1]}},
            {"topology.hosts": "[1]"},
        ),
        (
            {"name": "parameter_server", "topology": {"kind": "parameter_server", "hosts": [{"cloud": "a"}]}},
            {"topology.hosts": "[{cloud: a, nic: {up: 1 Gbps, down: 1..."},
        ),
    ],
    ids=str,
)
def test_differences_from_the_composition_are_listed(system, found):
    assert replaced(system) == found


NEEDING = """
from dlion_sim.protocol.baseline import FullExchange
from dlion_sim.protocol.choices import ChoiceParameters
from dlion_sim.protocol.systems import Composition

class Needing(FullExchange):
    class Parameters(ChoiceParameters):
        needed: int
        other: int = 1

SYSTEM = Composition("a test", exchange={"kind": "needing:Needing"})
"""


@pytest.fixture
def needing(tmp_path, monkeypatch):
    """A module of a system whose exchange needs a parameter of the scenario, in the current folder."""
    (tmp_path / "needing.py").write_text(NEEDING)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    yield
    sys.modules.pop("needing", None)


def test_a_composition_may_need_parameters_of_the_scenario(needing):
    assert replaced({"name": "needing:SYSTEM", "exchange": {"needed": 3}}) == {"exchange.needed": "3"}
    assert replaced({"name": "needing:SYSTEM", "exchange": "full"}) == {"exchange": "full"}
    with pytest.raises(InputError, match=r"system\.exchange\.needed: is required"):
        replaced("needing:SYSTEM")


def test_a_long_value_is_cut_off():
    edges = [[worker, worker + 1] for worker in range(30)]
    assert replaced({"name": "dpsgd", "topology": {"kind": "edges", "edges": edges}})["topology.edges"].endswith("...")


def test_the_manifest_is_the_same_for_the_resolved_scenario():
    scenario = digits(system={"name": "dlion", "exchange": {"n_min": 10}, "knowledge_transfer": "none"})
    setting = Setting.of(scenario)
    assert manifest_fields(setting)["system"] == "dlion"
    assert manifest_fields(setting)["replaced"] == {"exchange.n_min": "10", "knowledge_transfer": "none"}
    resolved = from_data(read_yaml(dump(setting.scenario)))
    assert manifest_fields(Setting.of(resolved))["replaced"] == manifest_fields(setting)["replaced"]
