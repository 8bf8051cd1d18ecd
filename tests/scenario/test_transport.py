from __future__ import annotations

from typing import Any

import pytest

from dlion_sim.errors import InputError
from dlion_sim.scenario import Dlcp, Pfabric, Reliable, StageBounds, dump, from_data
from dlion_sim.yaml_text import read_yaml


def test_all_of_a_message_arrives_unless_the_scenario_says_otherwise(data: dict[str, Any]) -> None:
    assert from_data(data).transport == Reliable()


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("reliable", Reliable()),
        ("pfabric", Pfabric()),
        ("dlcp", Dlcp()),
        ({"kind": "pfabric", "least_timeout": "1 ms"}, Pfabric(least_timeout="1 ms")),  # type: ignore[arg-type]
        ({"kind": "dlcp", "loss_bound": 0}, Dlcp(loss_bound=0.0)),
        ({"kind": "dlcp", "loss_bound": {"push": 0.1}}, Dlcp(loss_bound=StageBounds(push=0.1))),
        ({"kind": "dlcp", "by_tensor": {"0.weight": 0.02}}, Dlcp(by_tensor={"0.weight": 0.02})),
    ],
)
def test_a_name_is_short_for_its_kind_and_all_is_written_out(
    data: dict[str, Any], given: object, meant: object
) -> None:
    scenario = from_data({**data, "transport": given})
    assert scenario.transport == meant
    assert from_data(read_yaml(dump(scenario))) == scenario


def test_stages_that_are_not_named_lose_nothing() -> None:
    assert Dlcp(loss_bound=0.1).bounds == dict.fromkeys(("push", "pull", "reduce", "gather", "mix"), 0.1)
    assert Dlcp(loss_bound=StageBounds(pull=0.02)).bounds == {
        **dict.fromkeys(("push", "reduce", "gather", "mix"), 0.0),
        "pull": 0.02,
    }


def test_phases_are_read(data: dict[str, Any]) -> None:
    phases = [{"from": 0, "factor": 0.1}, {"from": 100, "factor": 2}]
    transport = from_data({**data, "transport": {"kind": "dlcp", "phases": phases}}).transport
    assert isinstance(transport, Dlcp)
    assert [(each.since, each.factor) for each in transport.phases] == [(0, 0.1), (100, 2)]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("udp", "transport: kind 'udp' is unknown; allowed: 'reliable', 'pfabric', 'dlcp'"),
        ({"kind": "dlcp", "loss_bound": 1}, "transport.loss_bound: must be less than 1, not 1"),
        ({"kind": "dlcp", "loss_bound": "x"}, "transport.loss_bound: must be a number, not 'x'"),
        ({"kind": "dlcp", "loss_bound": {"pull": -1}}, "transport.loss_bound.pull: must be 0 or more, not -1"),
        (
            {"kind": "dlcp", "loss_bound": {"pulls": 0.1}},
            "transport.loss_bound: unknown key 'pulls'; did you mean 'pull'?; allowed: push, pull, reduce, gather, mix",
        ),
        ({"kind": "dlcp", "by_tensor": {"bias": 2}}, "transport.by_tensor.bias: must be less than 1, not 2"),
        (
            {"kind": "dlcp", "phases": [{"from": 5, "factor": 0.1}, {"from": 5, "factor": 1}]},
            "transport.phases.1.from: iteration 5 comes after 5: phases are in order",
        ),
        (
            {"kind": "dlcp", "by_tensor": {"bias": 0.5}, "phases": [{"from": 0, "factor": 2}]},
            "transport.phases.0.factor: with 2 times the bound of 0.5 all might be lost; allowed: less than 1 together",
        ),
        ({"kind": "pfabric", "loss_bound": 0.1}, "transport: unknown key 'loss_bound'; allowed: kind, least_timeout"),
    ],
)
def test_invalid_transports_are_refused_in_one_line(data: dict[str, Any], given: object, told: str) -> None:
    with pytest.raises(InputError) as caught:
        from_data({**data, "transport": given})
    assert str(caught.value) == told
