"""Sensitivity: the winner with one more machine or a wider WAN, simulated."""

import pytest

from dlion_sim.recommend import Goal, write_recommendation
from dlion_sim.recommend.sensitivity import counterfactuals
from tests.recommend.digits import SCENARIO, in_this_process, study_of

GOAL = Goal(deadline=90.0)
ONE = {"instances": ["middle"], "counts": (1,), "systems": ("ring_allreduce",)}


def wider(tmp_path, wan):
    """The bandwidths (bit/s) of both paths in the simulated change of the WAN; None without one."""
    study = study_of(tmp_path, GOAL, **ONE, cluster={**SCENARIO["cluster"], "wan": wan})
    in_both = study.candidates[0]
    found = {each.what: each for each in counterfactuals(study.scenario, in_both, 1.0)}
    if "twice the WAN" not in found:
        return None
    cluster = found["twice the WAN"].start.candidate.point(study.base, 1).scenario().cluster
    paths = [cluster.wan_path(*ends) for ends in (("east", "west"), ("west", "east"))]
    assert all(rtt == pytest.approx(0.06) for _, rtt in paths)
    return [[bandwidth.value_at(time) for time in (0.0, 7.0)] for bandwidth, _ in paths]


def test_all_forms_of_bandwidths_are_doubled(tmp_path):
    (tmp_path / "wan.csv").write_text(",east,west\neast,,3 Mbps\nwest,5 Mbps,\n")
    path = {"between": ["east", "west"], "bandwidth": "1 Mbps", "rtt": "60 ms"}
    for wan, bandwidths in (
        ({"bandwidth": "4 Mbps"}, (8e6, 8e6)),
        ({"matrix": {"east": {"west": "3 Mbps"}}, "bandwidth": "4 Mbps"}, (6e6, 8e6)),
        ({"matrix": "wan.csv"}, (6e6, 10e6)),
        ({"bandwidth": "4 Mbps", "paths": [path]}, (2e6, 2e6)),
    ):
        assert wider(tmp_path, {"rtt": "60 ms", **wan}) == [[each] * 2 for each in bandwidths]
    changing = {"steps": {"0 s": "1 Mbps", "5 s": "2 Mbps"}, "repeat": "10 s"}
    assert wider(tmp_path, {"rtt": "60 ms", "bandwidth": changing}) == [[2e6, 4e6]] * 2


def test_an_unlimited_wan_is_not_doubled(tmp_path):
    assert wider(tmp_path, {"bandwidth": "unlimited", "rtt": "60 ms"}) is None


def test_a_wider_slow_wan_is_faster(tmp_path):
    wan = {"bandwidth": "0.5 Mbps", "rtt": "60 ms"}
    study = study_of(tmp_path, GOAL, **ONE, seeds=1, cluster={**SCENARIO["cluster"], "wan": wan})
    study.candidates = study.race.candidates = study.candidates[:1]  # the one in both clouds
    assert study.run(in_this_process, "cpu")
    content = write_recommendation(study)
    assert content["winner"]["clouds"] == "all"
    _, machine, network = content["sensitivity"]
    assert (machine["with"], network["with"]) == ("one more machine", "twice the WAN")
    assert network["seconds"] < 0.8 * content["winner"]["seconds"]["mean"]
    assert network["money"] < 0.8 * content["winner"]["money"]["mean"]
    assert " and " in network["summary"]
    assert (study.output / network["run"]).is_dir()


def test_one_more_machine_gives_a_single_worker_a_system(tmp_path):
    clouds = SCENARIO["cluster"]["clouds"][:1]
    study = study_of(tmp_path, GOAL, **ONE, seeds=1, cluster={"clouds": clouds}, prices=None)
    assert study.run(in_this_process, "cpu")
    content = write_recommendation(study)
    assert content["winner"]["system"] == "alone"
    assert [each["with"] for each in content["sensitivity"]] == ["one more hour", "one more machine and baseline"]
    assert content["confidence"]["summary"] == "only one seed was tried, so the variation over seeds is unknown"
