from __future__ import annotations

from typing import Any

from dlion_sim.scenario import Schedule, from_data


def test_workers_are_numbered_in_order_and_within_their_cloud(data: dict[str, Any]) -> None:
    workers = from_data(data).cluster.workers
    assert [worker.index for worker in workers] == [0, 1, 2, 3]
    assert [worker.name for worker in workers] == ["east/0", "east/1", "east/2", "west/0"]
    assert workers[3].cloud == "west"
    assert workers[3].compute.cores == Schedule.constant(4.0)
    assert workers[3].nic.down == Schedule.constant(20e6)


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
