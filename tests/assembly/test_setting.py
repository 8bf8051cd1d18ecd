"""What every participant's part in a run follows from: the scenario, and nothing else."""

import itertools

import pytest
import torch

from dlion_sim.assembly import Setting, manifest_fields
from dlion_sim.errors import InputError
from dlion_sim.learning.arithmetic import arithmetic
from dlion_sim.protocol.events import PeerLost
from dlion_sim.scenario import from_data, to_data
from tests.simulation.scenarios import digits

CPU = torch.device("cpu")
SERVERS = {"kind": "parameter_server", "hosts": [1, {"cloud": "east"}]}


def test_servers_are_numbered_after_workers_and_know_their_machines():
    setting = Setting.of(digits(system={"name": "parameter_server", "topology": SERVERS}))
    assert (setting.workers, setting.participants) == (3, 5)
    assert [list(setting.neighbours(rank)) for rank in range(5)] == [[3, 4]] * 3 + [[0, 1, 2]] * 2
    assert [setting.same_machine(rank) for rank in range(5)] == [set(), {3}, set(), {1}, set()]


def test_equal_hosts_are_different_machines():
    own = {"cloud": "east", "nic": "1 Gbps"}
    topology = {"kind": "parameter_server", "hosts": [own, own]}
    setting = Setting.of(digits(system={"name": "parameter_server", "topology": topology}))
    assert [setting.same_machine(rank) for rank in range(5)] == [set()] * 5


def test_a_participant_does_not_depend_on_which_others_are_made():
    alone, together = Setting.of(digits()), Setting.of(digits())
    everyone = [together.worker(worker) for worker in range(3)]
    last = alone.worker(2)
    assert torch.equal(last.replica.parameters, everyone[2].replica.parameters)
    assert last.setup.mixing == everyone[2].setup.mixing
    assert last.setup.training_samples == sum(map(len, together.shards))
    assert list(alone.sampler(2).take(5)) == list(together.sampler(2).take(5))
    noisy = {"clouds": [{"name": "a", "workers": [{"count": 3, "compute": {"cores": 4, "noise": 0.5}}]}]}
    machines = [Setting.of(digits(cluster=noisy)).machine(2) for _ in range(2)]
    assert machines[0].seconds(8, 0.0) == machines[1].seconds(8, 0.0)


def test_own_initial_parameters_differ_and_are_reproducible():
    def parameters(*overrides):
        setting = Setting.of(digits(*overrides))
        return [setting.worker(worker).replica.parameters for worker in range(3)]

    same, own, again = (parameters(f"workload.initial_parameters={kind}") for kind in ("same", "own", "own"))
    assert torch.equal(same[0], same[1])
    assert not any(torch.equal(one, other) for one, other in itertools.combinations([same[0], *own], 2))
    assert all(map(torch.equal, own, again))


def test_workers_do_not_share_state():
    setting = Setting.of(digits(system={"name": "baseline", "synchronization": "asynchronous"}))
    one, twin = setting.worker(0), setting.worker(0)
    one.replica.write(0, torch.ones(one.replica.layout.size))
    one.handle(PeerLost(2), 0.0)
    assert not torch.equal(one.replica.parameters, twin.replica.parameters)
    assert twin.setup.peers == (1, 2)


def test_servers_hold_all_parameters_between_them():
    setting = Setting.of(digits(system={"name": "parameter_server", "topology": SERVERS}))
    parts = [setting.server(number).replica.parameters for number in (3, 4)]
    assert torch.equal(torch.cat(parts), setting.worker(0).replica.parameters)


def test_the_manifest_has_the_variables_if_tables_refer_to_them():
    told = manifest_fields(Setting.of(digits(transport="dlcp")))
    assert told["variables"] == ["1.weight", "1.bias", "3.weight", "3.bias"]
    assert "variables" not in manifest_fields(Setting.of(digits()))


def test_the_manifest_has_outages_of_paths():
    clouds = [{"name": name, "workers": [{"count": 1}]} for name in ("east", "west")]
    cluster = {"clouds": clouds, "wan": {"bandwidth": "5 Mbps", "rtt": "60 ms"}}
    down = {"links": {"east>west": {"down": [["1 s", "2 s"]]}}}
    told = manifest_fields(Setting.of(digits(cluster=cluster, availability=down)))
    assert told["paths_down"] == [{"sender": "east", "receiver": "west", "begin": 1.0, "end": 2.0}]
    assert manifest_fields(Setting.of(digits(cluster=cluster)))["paths_down"] == []
    often = {"links": {"east-west": {"down": [["1 ms", "2 ms"]], "repeat": "5 ms"}}}
    assert "paths_down" not in manifest_fields(Setting.of(digits(cluster=cluster, availability=often)))


def test_the_manifest_has_the_arithmetic():
    told = manifest_fields(Setting.of(digits()))
    assert told["threads"] == torch.get_num_threads()
    assert told["arithmetic"] == arithmetic(CPU)
    assert {"cpu", "cpu_capability", "vector_lanes", "libc", "denormals", "default_dtype", "onednn"} <= set(
        arithmetic(CPU)
    )
    assert "gpu" not in told["arithmetic"]


@pytest.mark.parametrize("model", ["mlp", "tutorial_cnn"])
def test_the_resolved_scenario_has_the_cost_of_a_sample(model):
    given = digits("workload.compute_time={alpha: 3 ms}", f"workload.model={model}")
    setting = Setting.of(given)
    assert setting.scenario.workload.compute_time.beta == setting.core_seconds_per_sample > 0
    assert setting.scenario.workload.compute_time.alpha == 0.003
    again = Setting.of(from_data(to_data(setting.scenario)))
    assert again.core_seconds_per_sample == setting.core_seconds_per_sample
    assert to_data(again.scenario) == to_data(setting.scenario)
    assert [each.machine(2).seconds(16, 0.0) for each in (again, setting)] == [
        0.003 + setting.core_seconds_per_sample * 16 / 4
    ] * 2


@pytest.mark.parametrize(
    ("scenario", "path"),
    [
        (digits("workload.batch_size=100000"), "workload.batch_size"),
        (
            digits(system={"name": "parameter_server", "topology": {**SERVERS, "hosts": [{"cloud": "moon"}]}}),
            "system.topology.hosts.0.cloud",
        ),
    ],
    ids=["batch size", "cloud"],
)
def test_unusable_scenarios_are_refused(scenario, path):
    with pytest.raises(InputError) as fault:
        Setting.of(scenario)
    assert fault.value.path == path
