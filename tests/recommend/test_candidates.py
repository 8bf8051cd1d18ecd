"""Candidates, and refused machines."""

import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dlion_sim.assembly.outages import Outages
from dlion_sim.errors import InputError
from dlion_sim.protocol.compose import compose
from dlion_sim.recommend import KEY_PARAMETERS, SYSTEMS, Choices, Goal, Study
from dlion_sim.recommend.candidates import variants
from dlion_sim.scenario import SystemSpec
from dlion_sim.sweep import Base, check
from dlion_sim.yaml_text import read_file, read_yaml
from tests.recommend.digits import study_of, write_scenario

PAGE = Path(__file__).parents[2] / "docs" / "recommend.md"
GOAL = Goal(deadline=60.0)


def test_candidates_are_all_combinations(tmp_path):
    study = study_of(tmp_path, GOAL, counts=(1, 2), systems=("ring_allreduce",))
    assert [each.name for each in study.candidates] == [
        f"{instance}-{rest}"
        for instance in ("small", "middle")
        for rest in ("x1-all-ring_allreduce", "x2-all-ring_allreduce", "x1-east-alone", "x2-east-ring_allreduce")
    ]
    in_both, *_, alone, in_one = study.candidates[:4]
    assert (in_both.per_hour, alone.per_hour, in_one.per_hour) == (2.1, 1.0, 2.0)
    assert in_both.in_words == "ring_allreduce on 1 small in each of east, west"
    scenario = in_both.point(study.base, 7).scenario()
    assert [(worker.compute.cores.value_at(0), worker.nic.up.value_at(0)) for worker in scenario.cluster.workers] == [
        (8.0, 50e6)
    ] * 2
    assert (scenario.seed, scenario.target_accuracy, scenario.workload.validation) == (7, 0.8, 0.1)
    assert in_one.point(study.base, 1).scenario().cluster.wan is None


def test_an_unknown_device_is_refused_with_the_reason(tmp_path):
    study = study_of(tmp_path, GOAL)
    (refused,) = study.refused
    assert refused.name == "strange"
    assert "TPU, is no known device" in refused.reason


def test_an_instance_of_one_region_is_tried_only_there(tmp_path):
    file = write_scenario(tmp_path)
    catalog = tmp_path / "catalog.csv"
    catalog.write_text(catalog.read_text() + "rare,,,16,1.5,,there,1\n")
    study = Study(Base(file, read_file(file)), Choices(str(catalog), instances=["rare"]), GOAL, 1, tmp_path / "out")
    assert {each.labels["clouds"] for each in study.candidates} == {"west"}
    assert "no 'rare' in region 'here'" in study.refused[0].reason


def test_free_machines_are_no_candidates_for_a_budget(tmp_path):
    file = write_scenario(tmp_path)
    catalog = tmp_path / "catalog.csv"
    catalog.write_text("InstanceType,AcceleratorName,AcceleratorCount,vCPUs,Price,SpotPrice,Region\nown,,,8,0,,here\n")
    given = Base(file, {**read_file(file), "prices": None}), Choices(str(catalog))
    assert Study(*given, GOAL, 1, tmp_path / "out").candidates
    with pytest.raises(InputError, match="costs nothing, so no budget ends it"):
        Study(*given, Goal(budget=1.0), 1, tmp_path / "out")


def test_an_invalid_candidate_is_refused_and_the_others_remain(tmp_path):
    fabric = {
        "name": "east",
        "region": "here",
        "workers": [{"count": 2}],
        "lan": {"fabric": {"leaves": 2, "spines": 1}},
    }
    cluster = {
        "clouds": [fabric, {"name": "west", "region": "there", "workers": [{}]}],
        "wan": {"bandwidth": "unlimited", "rtt": "60 ms"},
    }
    study = study_of(tmp_path, GOAL, cluster=cluster, counts=(1, 2), systems=("ring_allreduce",))
    assert {each.labels["count"] for each in study.candidates} == {"2"}
    assert "2 leaves are more than the 1 workers" in study.refused[1].reason


@pytest.mark.parametrize("name", [*SYSTEMS, *KEY_PARAMETERS])
def test_every_variant_of_a_system_is_valid(name):
    tried = [*variants({"name": "baseline"}, [name])]
    assert len(tried) == len(KEY_PARAMETERS[name][1] if name in KEY_PARAMETERS else [None])
    for each in tried:
        compose(SystemSpec.model_validate(each.spec))


def test_the_scenarios_own_system_keeps_its_parameters():
    own = {"name": "diloco", "exchange": {"period": 7}}
    first, *others = variants(own, [])
    assert first.spec == own
    assert {each.labels["system"] for each in others} == {"dlion", "dlion_sparse", "ring_allreduce", "local_sgd"}
    plain = [each.spec for each in variants({"name": "dlion", "batching": "fixed"}, ["dlion"])]
    assert [each["exchange"] for each in plain] == [{"n_min": 0.85}, {"n_min": 10}]
    assert all(each["batching"] == "fixed" for each in plain)


def test_the_scenarios_own_system_may_be_incomplete_without_its_parameters(tmp_path, monkeypatch):
    imported = "from dlion_sim.protocol.systems import Composition"
    code = f"{imported}\nSYSTEM = Composition('a test', exchange={{'kind': 'parameter_server'}})"
    (tmp_path / "served.py").write_text(code)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    own = {"name": "served:SYSTEM", "topology": {"kind": "parameter_server", "hosts": [0]}}
    study = study_of(tmp_path, GOAL, counts=(2,), systems=("served:SYSTEM", "ring_allreduce"), system=own)
    sys.modules.pop("served")
    assert {each.labels["system"] for each in study.candidates} == {"served:SYSTEM", "ring_allreduce"}


def test_the_page_has_the_key_parameters():
    (row,) = re.findall(r"^\| key parameter.*$", PAGE.read_text(), re.MULTILINE)
    entries = re.findall(r"`(\w+)`: `([\w.]+)` ([\w., ]+)", row)
    content = {name: (path, values.strip().split(", ")) for name, path, values in entries}
    assert content == {name: (path, [*map(str, values)]) for name, (path, values) in KEY_PARAMETERS.items()}


def test_the_pages_scenario_has_candidates_in_the_default_catalog(tmp_path):
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    base = Base(tmp_path / "photos.yaml", read_yaml(text))
    study = Study(base, Choices("aws-skypilot", counts=(2,), systems=["dlion"]), GOAL, 3, tmp_path / "out")
    assert {each.labels["clouds"] for each in study.candidates} == {"all", "virginia"}
    study.candidates[0].point(base, 0).scenario()


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"target_accuracy": None}, "there is no target"),
        (
            {"cluster": {"clouds": [{"name": "east", "workers": [{}]}]}},
            "no cloud has a region of .* in each, e.g. {name: east, region: here, workers: ...}, of here, there; or",
        ),
        ({"systems": ["dlion", "ring_allreduc"]}, "^`systems`: unknown system .* did you mean 'ring_allreduce'"),
    ],
)
def test_without_a_candidate_it_is_an_error(tmp_path, keys, words):
    with pytest.raises(InputError, match=words):
        study_of(tmp_path, GOAL, **{"counts": (2,), **keys})


def test_an_unknown_instance_is_an_error(tmp_path):
    file = write_scenario(tmp_path)
    choices = Choices(str(tmp_path / "catalog.csv"), instances=["smal"])
    with pytest.raises(InputError, match="did you mean 'small'"):
        Study(Base(file, read_file(file)), choices, GOAL, 1, tmp_path / "out")


def test_an_instance_given_twice_is_tried_once(tmp_path):
    once, twice = (study_of(tmp_path, GOAL, instances=["small"] * count) for count in (1, 2))
    assert [each.name for each in twice.candidates] == [each.name for each in once.candidates]


def test_a_candidates_fault_names_its_place_in_the_scenario(tmp_path):
    [first, *_] = study_of(tmp_path, GOAL).candidates
    wrong = replace(first, values={**first.values, "system": {"name": "dlion", "exchange": {"n_mim": 1}}})
    with pytest.raises(InputError) as fault:
        check([wrong.point(study_of(tmp_path, GOAL).base, 1)])
    assert fault.value.path == "system.exchange"


def test_outages_of_links_are_within_what_the_goal_allows(tmp_path):
    """Without such outages, a run's end does not depend on the goal."""
    link = {"east-west": {"down": [["60 s", "70 s"]], "repeat": "1 h"}}
    for keys, duration in (({"availability": {"links": link}}, 240.0), ({}, 1e10)):
        study = study_of(tmp_path, GOAL, counts=(1,), **keys)
        [scenario, *_] = [study._run_of(each, 1).scenario() for each in study.candidates]
        assert scenario.duration == duration
        assert not keys or Outages.of(scenario, []).of_paths


def test_a_budget_that_never_ends_a_run_is_the_longest_duration():
    assert Goal(budget=1e12).max_seconds(0.01) == 1e10
