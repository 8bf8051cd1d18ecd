from __future__ import annotations

from typing import Any

import pytest

from dlion_sim.errors import InputError
from dlion_sim.scenario import Flows, Lv08, NoTcp, Packets, Windows, dump, from_data
from dlion_sim.yaml_text import read_yaml


def test_links_are_shared_at_once_unless_the_scenario_says_otherwise(data: dict[str, Any]) -> None:
    assert from_data(data).network.tcp == NoTcp()


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("none", NoTcp()),
        ("lv08", Lv08()),
        ("window", Windows()),
        ({"kind": "window", "receive_window": "64 KiB"}, Windows(receive_window="64 KiB")),  # type: ignore[arg-type]
    ],
)
def test_a_name_is_short_for_its_kind_and_all_is_written_out(
    data: dict[str, Any], given: object, meant: object
) -> None:
    scenario = from_data({**data, "network": {"tcp": given}})
    assert scenario.network.tcp == meant
    assert from_data(read_yaml(dump(scenario))) == scenario


def test_the_published_numbers() -> None:
    lv08 = Lv08()
    assert (lv08.latency_factor, lv08.bandwidth_factor, lv08.window, lv08.sharing_size) == (13.01, 0.97, 4194304, 20537)
    assert (Windows().initial_window, Windows().receive_window, Windows().idle_restart) == (10, 3145728, True)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("flows", Flows()),
        ("packets", Packets()),
        ({"kind": "packets", "buffer": "30 packets"}, Packets(buffer="45420 B")),  # type: ignore[arg-type]
    ],
)
def test_a_network_is_of_flows_or_of_packets(data: dict[str, Any], given: object, meant: object) -> None:
    assert from_data(data).network.model == Flows()
    scenario = from_data({**data, "network": {"model": given}})
    assert scenario.network.model == meant
    assert from_data(read_yaml(dump(scenario))) == scenario


def test_packets_are_lost_on_paths_too(data: dict[str, Any]) -> None:
    data["cluster"]["wan"]["loss"] = 0.001
    assert from_data({**data, "network": {"model": "packets"}}).cluster.wan_loss("east", "west") == 0.001


def test_windows_know_no_fabrics(data: dict[str, Any]) -> None:
    data["cluster"]["clouds"][0]["lan"] = {"fabric": {"leaves": 3, "spines": 2}}
    assert from_data(data).cluster.first_fabric
    with pytest.raises(
        InputError, match=r"cluster\.clouds\.0\.lan\.fabric: window does not support fabrics; allowed: with net"
    ):
        from_data({**data, "network": {"tcp": "window"}})


def test_a_path_has_the_losses_of_the_wan_unless_it_states_its_own(data: dict[str, Any]) -> None:
    data["network"] = {"tcp": "window"}
    data["cluster"]["wan"] |= {"loss": 0.001, "paths": [{"from": "west", "to": "east", "loss": 0}]}
    cluster = from_data(data).cluster
    assert (cluster.wan_loss("east", "west"), cluster.wan_loss("west", "east")) == (0.001, 0.0)
