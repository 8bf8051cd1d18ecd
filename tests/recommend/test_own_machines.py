"""Recommendations for the scenario's own machines: systems, key parameters and learning rates."""

import json
import math

import pytest

from dlion_sim.errors import InputError
from dlion_sim.metric import ACCURACY, Metric
from dlion_sim.recommend import SYSTEMS, Choices, Goal, Study, write_recommendation
from dlion_sim.recommend.pilot import Pilots, proposed, reached
from dlion_sim.recommend.sensitivity import counterfactuals
from dlion_sim.results import Run
from dlion_sim.scenario import load
from dlion_sim.sweep import Base, Point
from dlion_sim.yaml_text import read_file
from tests.made_up import made_up_run
from tests.recommend.digits import SCENARIO, in_this_process, write_scenario

CLOUDS = [
    {"name": "east", "workers": [{"count": 2, "compute": {"cores": 8}}]},
    {"name": "west", "workers": [{"compute": {"cores": 4}}]},
]
OWN = {"cluster": {**SCENARIO["cluster"], "clouds": CLOUDS}, "prices": None, "duration": "1 min"}
PRICED = [{**cloud, "workers": [{**group, "price": 0.5} for group in cloud["workers"]]} for cloud in CLOUDS]
PRICES = {"cluster": {**SCENARIO["cluster"], "clouds": PRICED}, "prices": SCENARIO["prices"]}


def own_study(folder, goal=None, *, systems=("ring_allreduce", "local_sgd"), seeds=2, of_all=False, **keys):
    file = write_scenario(folder, **{**OWN, **keys})
    choices = Choices(None, systems=systems)
    study = Study(Base(file, read_file(file)), choices, goal, seeds, folder / "out", of_all=of_all)
    study.check()
    return study


def test_candidates_are_systems_and_learning_rates_on_the_machines_of_the_scenario(tmp_path):
    study = own_study(tmp_path, systems=())
    assert {each.labels["system"] for each in study.candidates} == {*SYSTEMS}
    assert {each.labels["learning_rate"] for each in study.candidates} == {"0.0125", "0.05", "0.2"}
    assert len(study.candidates) == 8 * 3
    first = study.candidates[0]
    assert first.in_words == "dlion, n min 0.85, learning rate 0.05"
    for each in study.candidates:
        scenario = each.point(study.base, 1).scenario()
        assert scenario.cluster == study.scenario.cluster
        assert scenario.workload.partition == study.scenario.workload.partition
        assert scenario.workload.validation == 0.1
        assert f"{scenario.workload.optimizer.learning_rate:g}" == each.labels["learning_rate"]


def test_without_a_bound_the_fastest_within_the_duration_wins(tmp_path):
    study = own_study(tmp_path)
    assert study.goal == Goal(deadline=60.0, is_fastest=True)
    assert study.run(in_this_process, "cpu")
    content = write_recommendation(study)
    winner = content["winner"]
    assert content["summary"].startswith(f"{winner['in_words']} is the fastest")
    assert winner["seconds"]["mean"] == min(each["seconds"]["mean"] for each in content["candidates"] if each["seeds"])
    assert all(run.run.evaluated_on == "validation" for run in study.race.observed.values())
    written = load(study.output / "winner.yaml")
    assert written.cluster == study.scenario.cluster
    assert written.system.name == winner["system"]
    assert f"{written.workload.optimizer.learning_rate:g}" == winner["learning_rate"]
    figure = (study.output / "pareto.svg").read_text()
    assert "WAN bytes" in figure
    assert f"{study.scenario.name}, 80 %, deadline 60 s" in figure
    rate = winner["learning_rate"]
    extreme, further = {"0.0125": ("smallest", "smaller"), "0.2": ("largest", "larger")}[rate]
    beyond = f"{rate} is the {extreme} learning rate tried with it; for {further} ones write `workload.optimizer."
    assert beyond in content["confidence"]["summary"]


def test_without_prices_money_is_left_out(tmp_path):
    study = own_study(tmp_path, systems=["ring_allreduce"], seeds=1)
    assert study.run(in_this_process, "cpu")
    content = write_recommendation(study)
    assert not {"money", "per_hour"} & content["winner"].keys()
    text = json.dumps(content)
    assert not any(word in text for word in ("money", "cost", "dearer", "cheap"))
    assert all(math.isfinite(each["wan_bytes"]["mean"]) for each in content["pareto"])


def test_with_prices_the_goals_are_those_of_rented_machines(tmp_path):
    assert own_study(tmp_path / "a", Goal(deadline=30.0), **PRICES).goal == Goal(deadline=30.0)
    study = own_study(tmp_path / "b", Goal(budget=1.0), **PRICES)
    assert {each.per_hour for each in study.candidates} == {1.5}
    assert own_study(tmp_path / "c", **PRICES).goal == Goal(deadline=60.0, is_fastest=True)
    assert own_study(tmp_path / "d", Goal(deadline=30.0)).goal == Goal(deadline=30.0, is_fastest=True)


@pytest.mark.parametrize(
    ("goal", "keys", "words"),
    [
        (Goal(budget=1.0), {}, "the machines have no prices.*`deadline`"),
        (None, {"duration": None, "iterations": 5}, "has no duration.*`deadline` 6h"),
    ],
)
def test_what_is_missing_is_an_error(tmp_path, goal, keys, words):
    with pytest.raises(InputError, match=words):
        own_study(tmp_path, goal, **keys)


def twice(tmp_path, **keys):
    """A study without a target, done twice: the last one, and the contents of both as JSON."""
    contents = []
    for _ in range(2):
        study = own_study(tmp_path, seeds=1, target_accuracy=None, **keys)
        assert math.isnan(study.target)
        assert study.run(in_this_process, "cpu")
        contents.append(json.dumps(write_recommendation(study)))
    return study, contents


def test_without_a_target_it_is_what_the_own_system_reaches(tmp_path):
    study, (first, again) = twice(tmp_path)
    content = json.loads(first)
    target = content["target"]["value"]
    pilot = Run.open(study.output / "pilot")
    assert pilot.evaluated_on == "validation"
    assert target <= reached(pilot, 60) < target + 0.01
    assert content["target"]["proposed"] == f"the target is {100 * target:.0f} %, which dlion reaches in 60 s"
    assert load(study.output / "winner.yaml").target_accuracy == target
    assert content["winner"]["seconds"]["mean"] < 60
    assert again == first


def test_the_best_of_all_candidates_may_be_the_target(tmp_path):
    study, (first, again) = twice(tmp_path, of_all=True)
    pilots = [run for run in map(Run.open, study.output.glob("pilot-*")) if run.outcome["virtual_seconds"] >= 60]
    assert 2 <= len(pilots) < len(study.candidates)
    assert study.target <= max(reached(run, 60) for run in pilots) < study.target + 0.01
    assert "which ring_allreduce" in study.proposal or "which local_sgd" in study.proposal
    assert again == first


def test_the_better_half_of_the_pilots_continues(tmp_path):
    names = "abcde"
    runs = {name: made_up_run(tmp_path / name, (0.1, 0.1 * number)) for number, name in enumerate(names, 2)}
    del runs["e"]  # It failed.
    points = [Point(name, Base(tmp_path, {}), {}, {}, tmp_path) for name in names]
    pilots = Pilots(points, {}, 80.0)
    assert pilots.times == [20.0, 40.0, 80.0]
    assert [each.name for each in pilots.better(points, runs, 80.0)] == ["d", "c", "b"]
    assert [each.name for each in pilots.better(points[:1], runs, 80.0)] == ["a"]
    assert not pilots.better(points[4:], runs, 80.0)


PERPLEXITY = Metric("perplexity", higher_is_better=False)


@pytest.mark.parametrize(
    ("metric", "first", "last", "target"),
    [(ACCURACY, 0.1, 0.8279, 0.82), (PERPLEXITY, 80.0, 11.234, 11.3), (PERPLEXITY, 2000.0, 1234.0, 1240.0)],
)
def test_proposals_are_rounded_to_what_is_easier(metric, first, last, target):
    assert proposed(metric, first, last) == target


@pytest.mark.parametrize(("metric", "first", "last"), [(ACCURACY, 0.5, 0.503), (PERPLEXITY, 80.0, 79.99)])
def test_nothing_is_proposed_without_learning(metric, first, last):
    with pytest.raises(InputError, match=r"there is no target.*nothing is learned.*`target_accuracy`, e.g. 80"):
        proposed(metric, first, last)


def test_a_single_worker_is_alone(tmp_path):
    clouds = [{**CLOUDS[0], "workers": [{}]}]
    study = own_study(tmp_path, systems=(), cluster={"clouds": clouds})
    assert {each.labels["system"] for each in study.candidates} == {"alone"}
    assert len(study.candidates) == 3


def test_changes_of_links_clouds_machines_and_batch_size_are_simulated(tmp_path):
    study = own_study(tmp_path, systems=["ring_allreduce"], **PRICES)
    assert study.run(in_this_process, "cpu")
    content = write_recommendation(study)
    changes = {each["with"]: each for each in content["sensitivity"]}
    assert [*changes] == [
        "twice the WAN",
        "all clouds but east, a single worker",
        "all clouds but west",
        "one more machine in east",
        "one more machine in west",
        "twice the batch size (32)",
        "half the batch size (8)",
    ]
    for each in changes.values():
        assert ("certainty" in each) == (each["summary"] != "does not reach the target")
        words = ("significan", "as long", "not reach")
        assert any(word in each["summary"] for word in words)
    scenarios = {each.what: each.start.candidate.point(study.base, 1).scenario() for each in study.counterfactuals}
    assert [len(scenarios[what].cluster.workers) for what in [*changes][:5]] == [3, 1, 2, 4, 4]
    assert [cloud.name for cloud in scenarios["all clouds but east, a single worker"].cluster.clouds] == ["west"]
    prices = {each.what: each.start.candidate.per_hour for each in study.counterfactuals}
    assert [prices[what] for what in [*changes][:5]] == [1.5, 0.5, 1.0, 2.0, 2.0]


def changes_of(folder, **keys):
    study = own_study(folder, systems=["ring_allreduce"], **keys)
    found = counterfactuals(study.scenario, study.candidates[0], 60.0)
    return {each.what: each.start.candidate.point(study.base, 1).scenario() for each in found}


def test_with_more_clouds_the_paths_of_each_are_doubled_apart(tmp_path):
    clouds = [{"name": name, "workers": [{"count": 2}]} for name in ("east", "west", "north")]
    path = {"from": "east", "to": "west", "bandwidth": "1 Mbps", "loss": 0.01}
    wan = {"bandwidth": "4 Mbps", "rtt": "60 ms", "paths": [path]}
    found = changes_of(tmp_path, cluster={"clouds": clouds, "wan": wan}, network={"tcp": "window"})
    of_east = found["twice the WAN of east"].cluster
    ways = [("east", "west"), ("west", "east"), ("east", "north"), ("west", "north")]
    assert [of_east.wan_path(*way)[0].value_at(0) for way in ways] == [2e6, 8e6, 8e6, 4e6]
    assert {of_east.wan_path(*way)[1] for way in ways} == {0.06}
    rest = found["all clouds but north"].cluster
    assert [rest.wan_path(*way)[0].value_at(0) for way in ways[:2]] == [1e6, 4e6]
    assert [rest.wan_loss(*way) for way in ways[:2]] == [0.01, 0.0]


def test_owners_keep_their_clouds_and_unlimited_links_are_not_doubled(tmp_path):
    workload = {**SCENARIO["workload"], "partition": "owners", "batch_size": 1}
    wan = {"bandwidth": "unlimited", "rtt": "60 ms"}
    found = changes_of(tmp_path, workload=workload, cluster={"clouds": CLOUDS, "wan": wan})
    assert [*found] == ["one more machine in east", "one more machine in west", "twice the batch size (2)"]


def test_only_the_clouds_with_most_workers_are_changed(tmp_path):
    clouds = [{"name": f"c{count}", "workers": [{"count": count}]} for count in range(1, 7)]
    found = changes_of(tmp_path, cluster={**OWN["cluster"], "clouds": clouds})
    assert [what for what in found if what.startswith("all clouds but")] == [
        f"all clouds but c{count}" for count in (3, 4, 5, 6)
    ]


def test_an_invalid_change_is_reported(tmp_path):
    outage = {"clouds": {"west": {"down": [["55 s", "56 s"]]}}, "on_loss": "go_on"}
    study = own_study(tmp_path, systems=["local_sgd"], seeds=1, availability=outage)
    assert study.run(in_this_process, "cpu")
    content = write_recommendation(study)
    (without,) = (each for each in content["sensitivity"] if each["with"] == "all clouds but west")
    assert without["summary"].startswith("not simulated: ")
