"""Samples with owners stay in their clouds; for others the recommendation states an assumption."""

import re

import pytest

from dlion_sim.cli.recommended import print_candidates
from dlion_sim.recommend import Goal
from dlion_sim.recommend.document import document
from tests.recommend.digits import SCENARIO, study_of

GOAL = Goal(deadline=60.0)


def study(folder, partition, **keys):
    workload = {**SCENARIO["workload"], "partition": partition}
    return study_of(folder, GOAL, systems=("ring_allreduce",), counts=(1, 2), **{"workload": workload, **keys})


@pytest.mark.parametrize(
    "partition", ["owners", {"kind": "owners", "at": {"east": 0, "west": 1}}, {"kind": "owners", "at": {"west": 1}}]
)
def test_every_cloud_with_owners_participates(tmp_path, partition):
    found = study(tmp_path, partition)
    assert {each.labels["clouds"] for each in found.candidates} == {"all"}
    assert {each.labels["count"] for each in found.candidates} == {"1", "2"}
    for each in found.candidates:
        scenario = each.point(found.base, 1).scenario()
        assert scenario.workload.partition == found.scenario.workload.partition


def test_owners_at_workers_stay_in_their_clouds(tmp_path):
    clouds = [{"name": name, "region": "here", "workers": [{"count": 2}]} for name in ("east", "west")]
    at = {"east/0": 3, "east/1": [0, 4], "west": [1, 2]}
    found = study(
        tmp_path,
        {"kind": "owners", "at": at},
        cluster={"clouds": clouds, "wan": {"bandwidth": "4 Mbps", "rtt": "60 ms"}},
    )
    for each in found.candidates:
        assert each.point(found.base, 1).scenario().workload.partition.at == {"east": [3, 0, 4], "west": [1, 2]}


def test_a_single_cloud_is_a_candidate(tmp_path):
    cluster = {"clouds": [{"name": "east", "region": "here", "workers": [{}]}]}
    found = study(tmp_path, "owners", cluster=cluster)
    assert {each.labels["clouds"] for each in found.candidates} == {"east"}


@pytest.mark.parametrize(
    ("partition", "stay", "words"),
    [
        (
            "iid",
            False,
            r"assumed: .* the workers of each candidate \(workload.partition: iid\).*kind: owners",
        ),
        ("shared", False, r"assumed: every worker has all training samples \(workload.partition: shared\)"),
        ("owners", True, "assumed: .* samples of all owners are assigned at random, by seed and number of workers"),
        ({"kind": "owners", "at": {"east": 0}}, True, "assumed: .* owners that workload.partition.at does not name"),
        ({"kind": "owners", "at": {"east": 0, "west": 1}}, True, "^each owner's samples stay in their cloud"),
    ],
)
def test_the_placement_is_stated(tmp_path, capsys, partition, stay, words):
    found = study(tmp_path, partition)
    content = document(found)["data"]
    assert content["stay"] is stay
    assert re.search(words, content["summary"])
    print_candidates(found)
    assert content["summary"] in " ".join(capsys.readouterr().out.split())
