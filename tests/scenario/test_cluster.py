from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from dlion_sim.errors import InputError
from dlion_sim.scenario import Schedule, from_data, load
from dlion_sim.scenario.system import ParameterServers, ServerHost, hosts_of, machines_of


def test_workers_are_numbered_in_order_and_within_their_cloud(data: dict[str, Any]) -> None:
    workers = from_data(data).cluster.workers
    assert [worker.index for worker in workers] == [0, 1, 2, 3]
    assert [worker.name for worker in workers] == ["east/0", "east/1", "east/2", "west/0"]
    assert workers[3].cloud == "west"
    assert workers[3].compute.cores == Schedule.constant(4.0)
    assert workers[3].nic.down == Schedule.constant(20e6)


def test_servers_are_on_workers_machines_or_on_the_next_ones() -> None:
    hosts = [1, ServerHost(cloud="east"), 1, ServerHost(cloud="west")]
    assert machines_of(3, hosts) == [0, 1, 2, 1, 3, 1, 4]
    assert machines_of(2, hosts_of(ParameterServers(hosts=[0]))) == [0, 1, 0]
    assert machines_of(2, hosts_of(None)) == [0, 1]


def test_the_wan_gives_every_two_clouds_a_path(data: dict[str, Any]) -> None:
    cluster = from_data(data).cluster
    assert cluster.wan_path("east", "west") == cluster.wan_path("west", "east") == (Schedule.constant(40e6), 0.06)


def test_a_path_inherits_what_it_omits(data: dict[str, Any]) -> None:
    data["cluster"]["wan"]["paths"] = [{"from": "west", "to": "east", "rtt": "0 ms"}]
    cluster = from_data(data).cluster
    assert cluster.wan_path("east", "west") == (Schedule.constant(40e6), 0.06)
    assert cluster.wan_path("west", "east") == (Schedule.constant(40e6), 0.0)


def test_paths_alone_may_join_the_clouds(data: dict[str, Any]) -> None:
    data["cluster"]["wan"] = {"paths": [{"between": ["east", "west"], "bandwidth": "5 Mbps", "rtt": "9 ms"}]}
    assert from_data(data).cluster.wan_path("west", "east") == (Schedule.constant(5e6), 0.009)


def test_one_worker_is_enough(data: dict[str, Any]) -> None:
    data["cluster"] = {"clouds": [{"name": "only", "workers": [{}]}]}
    cluster = from_data(data).cluster
    assert [worker.name for worker in cluster.workers] == ["only/0"]
    assert cluster.clouds[0].lan.rtt == 0.0002


def three(data: dict[str, Any], wan: dict[str, Any]) -> Any:
    """The cluster of three clouds, a, b and c, joined by that."""
    clouds = [{"name": name, "workers": [{}]} for name in "abc"]
    return from_data({**data, "cluster": {"clouds": clouds, "wan": wan}}).cluster


def test_a_path_may_be_that_of_one_cloud_with_all_others(data: dict[str, Any]) -> None:
    wan = {"bandwidth": "40 Mbps", "rtt": "60 ms"}
    slow = {"between": ["b", "*"], "bandwidth": "1 Mbps"}
    cluster = three(data, {**wan, "paths": [slow]})
    carries = {(a, b): cluster.wan_path(a, b)[0].value_at(0) for a, b in ("ab", "ba", "bc", "cb", "ac", "ca")}
    assert carries == {pair: 1e6 if "b" in pair else 40e6 for pair in carries}
    assert cluster.wan_path("b", "c")[1] == 0.06


def test_a_path_by_both_names_has_precedence_over_a_wildcard(data: dict[str, Any]) -> None:
    all_ways = [{"from": "b", "to": "*", "bandwidth": "1 Mbps", "rtt": "1 ms"}, {"from": "b", "to": "c", "rtt": "9 ms"}]
    for paths in (all_ways, all_ways[::-1]):
        cluster = three(data, {"bandwidth": "40 Mbps", "rtt": "60 ms", "paths": paths})
        assert cluster.wan_path("b", "a") == (Schedule.constant(1e6), 0.001)
        assert cluster.wan_path("b", "c") == (Schedule.constant(40e6), 0.009)
        assert cluster.wan_path("c", "b") == (Schedule.constant(40e6), 0.06)


def test_unlimited_paths(data: dict[str, Any]) -> None:
    wan = {"bandwidth": "unlimited", "rtt": "1 ms", "matrix": {"a": {"b": "unlimited"}, "b": {"a": "2 Mbps"}}}
    cluster = three(data, {**wan, "paths": [{"between": ["b", "c"], "bandwidth": "unlimited"}]})
    assert cluster.wan_path("b", "a") == (Schedule.constant(2e6), 0.001)
    for a, b in ("ab", "ac", "bc"):
        assert cluster.wan_path(a, b) == (None, 0.001)
    assert cluster.model_dump(mode="json")["wan"]["bandwidth"] == "unlimited"


def test_the_scenario_of_an_old_run_keeps_its_meaning(data: dict[str, Any], tmp_path: Path) -> None:
    former = {**data, "cluster": {**data["cluster"], "wan": {"rtt": "60 ms"}}}
    file = tmp_path / "scenario.yaml"
    file.write_text(yaml.safe_dump(former))
    with pytest.raises(InputError, match="the path from 'east' to 'west' has no bandwidth"):
        load(file)
    (tmp_path / "manifest.json").write_text("{}")
    assert load(file).cluster.wan_path("east", "west") == (None, 0.06)
    data["cluster"]["wan"] = {"rtt": "60 ms", "bandwidth": "unlimited"}
    assert load(file) == from_data(data)
