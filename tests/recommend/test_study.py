"""A recommendation against trying everything to the end."""

import json
import shutil

import pytest

from dlion_sim.recommend import DOCUMENT, WINNER, Goal, write_recommendation
from dlion_sim.recommend.race import Start
from dlion_sim.results.atomic import json_bytes
from dlion_sim.scenario import load
from tests.at_once import killed
from tests.recommend.digits import in_this_process, study_of

SEEDS = 2
DEADLINE, BUDGET = Goal(deadline=60.0), Goal(budget=0.04)
SMALL = {"seeds": SEEDS, "counts": (2,)}


def recommended(folder, goal, execute=in_this_process):
    study = study_of(folder, goal, **SMALL)
    assert study.run(execute, "cpu")
    return study, write_recommendation(study)


@pytest.fixture(scope="module")
def by_deadline(tmp_path_factory):
    return recommended(tmp_path_factory.mktemp("deadline"), DEADLINE)


@pytest.fixture(scope="module")
def by_budget(tmp_path_factory):
    return recommended(tmp_path_factory.mktemp("budget"), BUDGET)


@pytest.fixture(scope="module")
def tried(tmp_path_factory, by_deadline):
    """The folder of the former with all candidates done to the end, or as far as any of the bounds."""
    study, _ = by_deadline
    folder = tmp_path_factory.mktemp("tried")
    shutil.copytree(study.output, folder / "out")
    study = study_of(folder, DEADLINE, **SMALL)
    starts = [
        Start(each, seed, max(goal.most_seconds(each.per_hour) for goal in (DEADLINE, BUDGET)))
        for each in study.candidates
        for seed in range(SEEDS)
    ]
    assert study._execute(in_this_process, "all", starts, "cpu")
    return folder


def exhaustive(folder, goal):
    """What trying everything comes to: by candidate the mean of what is spent within the bound, and all samples."""
    study = study_of(folder, goal, **SMALL)
    spent, samples = {}, 0
    for each in study.candidates:
        starts = [Start(each, seed, goal.most_seconds(each.per_hour)) for seed in range(SEEDS)]
        seen = [study.look(start) for start in starts]
        samples += sum(one.samples for one in seen)
        good = [
            goal.spent(one.seconds, one.money) for one in seen if one.reached and goal.allows(one.reached, one.money)
        ]
        if len(good) == SEEDS:
            spent[each.name] = sum(good) / SEEDS
    return spent, samples


@pytest.mark.parametrize(("goal", "asked"), [(DEADLINE, "by_deadline"), (BUDGET, "by_budget")])
def test_nothing_that_was_tried_to_the_end_is_better_at_a_third_of_the_samples(request, tried, goal, asked):
    _, told = request.getfixturevalue(asked)
    spent, samples = exhaustive(tried, goal)
    assert len(spent) >= 3
    winner = told["winner"]
    assert winner["money" if goal.deadline else "seconds"]["mean"] == spent[winner["candidate"]] == min(spent.values())
    assert told["samples"]["simulated"] <= samples / 3
    assert told["samples"]["exhaustive"] == pytest.approx(samples, rel=0.5)


def test_it_says_who_is_next_and_why_and_what_more_would_bring(by_deadline):
    study, told = by_deadline
    winner = told["winner"]
    assert winner["seeds"] == told["confidence"]["reaches_the_target"] == SEEDS
    assert winner["money"]["low"] <= winner["money"]["mean"] <= winner["money"]["high"]
    assert sum(winner["stalls"]["shares"].values()) == pytest.approx(1)
    assert told["next_best"]["candidate"] != winner["candidate"]
    assert "dearer" in told["next_best"]["why"]
    assert [each["with"] for each in told["margins"]] == ["one more hour", "one more machine"]
    assert told["margins"][1]["seconds"] <= winner["runs"][0]["seconds"]
    assert {each["candidate"] for each in told["pareto"]} >= {winner["candidate"]}
    named = {each["candidate"] for each in told["rejected"]}
    assert named == {each.name for each in study.candidates} - {winner["candidate"]} | {"strange"}
    assert all(each["reason"] for each in told["rejected"])
    assert json.loads((study.output / DOCUMENT).read_text())["winner"]["candidate"] == winner["candidate"]


def test_every_candidate_is_compared_with_the_winner(by_deadline):
    _, told = by_deadline
    for each in told["candidates"]:
        is_best = each["candidate"] == told["winner"]["candidate"]
        assert bool(each["why_not"]) != is_best
    assert any(each["why_not"].endswith("of the way") for each in told["candidates"] if not each["seeds"])
    assert told["winner"]["alike"] == []


def test_checkpoints_go_once_there_is_a_winner_and_runs_stay(by_deadline, tmp_path):
    study, told = by_deadline
    assert not [*study.output.glob("*/checkpoint*")]
    left_behind = [each.run for each in study.race.seen.values() if each.run.manifest["status"] == "interrupted"]
    assert len(left_behind) > 1
    assert all(len(run.metrics()) for run in left_behind)

    # Killed before all of them were gone, it removes the others, and does nothing else again.
    shutil.copytree(study.output, tmp_path / "out")
    file = tmp_path / "out" / left_behind[0].folder.name / "checkpoint.pt"
    file.write_bytes(b"of a run that was left behind")
    assert json_bytes(recommended(tmp_path, DEADLINE, lambda title, jobs: False)[1]) == json_bytes(told)
    assert not file.exists()


def test_the_choice_never_sees_the_test_set(by_deadline):
    study, told = by_deadline
    assert told["target"]["held_out"] == 0.1
    for name in study.race.seen:
        assert study.race.seen[name].run.evaluated_on == "validation"


def test_the_winners_scenario_is_ready_to_run(by_deadline):
    study, told = by_deadline
    scenario = load(study.output / WINNER)
    assert scenario.duration == DEADLINE.deadline
    assert scenario.target_accuracy == study.target
    assert scenario.workload.validation == 0
    assert scenario.system.name == told["winner"]["system"]
    assert len(scenario.cluster.workers) == 2
    assert scenario.description == told["told"]


def test_what_runs_have_come_to_since_changes_nothing(tried, by_deadline):
    """Not even the number of samples: only what was seen by the end of a rung counts."""
    _, told = by_deadline

    def refuse(title, jobs):
        return title == "what if" and in_this_process(title, jobs)

    assert json_bytes(recommended(tried, DEADLINE, refuse)[1]) == json_bytes(told)


def test_an_impossible_deadline_says_what_would_be_needed(tried):
    study, told = recommended(tried, Goal(deadline=8.0))
    assert told["winner"] is None
    needed = told["needed"]
    assert needed["seeds"] == 1
    assert 8.0 < needed["seconds"]["mean"] <= 32.0
    assert "deadline 8 s" in told["told"]
    assert needed["in_words"] in told["told"]
    assert not (study.output / WINNER).exists()


def test_beyond_the_bound_who_seems_to_need_less_is_tried_too(tmp_path):
    study = study_of(tmp_path, Goal(deadline=5.0), counts=(2,), systems=("ring_allreduce",))
    assert study.run(in_this_process, "cpu")
    told = write_recommendation(study)
    needed = told["needed"]
    assert needed["seeds"] == 1
    assert needed["seconds"]["mean"] <= min(each["seconds"]["mean"] for each in told["candidates"])


def test_where_nothing_comes_to_the_target_what_is_needed_is_extrapolated(tmp_path):
    study = study_of(tmp_path, Goal(deadline=4.0), counts=(1,), systems=("ring_allreduce",), target_accuracy=0.97)
    assert study.run(in_this_process, "cpu")
    told = write_recommendation(study)
    assert told["winner"] is None
    assert told["needed"]["estimated"] == "at the least"
    assert told["needed"]["seconds"]["mean"] > 16.0
    assert "extrapolated" in told["told"]
    assert {each["candidate"] for each in told["rejected"]} == {each.name for each in study.candidates} | {"strange"}
    assert [*study.output.glob("*/checkpoint.pt")], "a later deadline goes on from them"


def test_killed_in_the_middle_it_goes_on_to_the_same(tmp_path, monkeypatch, by_deadline):
    _, told = by_deadline
    study = study_of(tmp_path, DEADLINE, **SMALL)
    options = ["--counts", "2", "--systems", "dlion,ring_allreduce", "--seeds", str(SEEDS), "--catalog", "catalog.csv"]
    monkeypatch.chdir(tmp_path)
    killed(4, "recommend", "learn.yaml", "-o", "out", "--deadline", "60 s", *options, "--quiet")
    assert [*study.output.glob("*/summary.json")]
    assert not (study.output / DOCUMENT).exists()
    assert json_bytes(recommended(tmp_path, DEADLINE)[1]) == json_bytes(told)
