"""A recommendation compared with an exhaustive search."""

import json
import re
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
    """The folder of that study, with all candidates run to the target or the larger bound."""
    study, _ = by_deadline
    folder = tmp_path_factory.mktemp("tried")
    shutil.copytree(study.output, folder / "out")
    study = study_of(folder, DEADLINE, **SMALL)
    starts = [
        Start(each, seed, max(goal.max_seconds(each.per_hour) for goal in (DEADLINE, BUDGET)))
        for each in study.candidates
        for seed in range(SEEDS)
    ]
    assert study._execute(in_this_process, "all", starts, "cpu")
    return folder


def exhaustive(folder, goal):
    """The exhaustive search: the mean objective within the bound by candidate, and all samples."""
    study = study_of(folder, goal, **SMALL)
    objective, samples = {}, 0
    for each in study.candidates:
        starts = [Start(each, seed, goal.max_seconds(each.per_hour)) for seed in range(SEEDS)]
        observation = [study.observe(start) for start in starts]
        samples += sum(one.samples for one in observation)
        good = [
            goal.objective(one.seconds, one.money)
            for one in observation
            if one.reached and goal.allows(one.reached, one.money)
        ]
        if len(good) == SEEDS:
            objective[each.name] = sum(good) / SEEDS
    return objective, samples


@pytest.mark.parametrize(("goal", "asked"), [(DEADLINE, "by_deadline"), (BUDGET, "by_budget")])
def test_the_winner_is_that_of_an_exhaustive_search_at_a_third_of_the_samples(request, tried, goal, asked):
    _, content = request.getfixturevalue(asked)
    objective, samples = exhaustive(tried, goal)
    assert len(objective) >= 3
    winner = content["winner"]
    assert (
        winner["money" if goal.deadline else "seconds"]["mean"]
        == objective[winner["candidate"]]
        == min(objective.values())
    )
    assert content["samples"]["simulated"] <= samples / 3
    assert content["samples"]["exhaustive"] == pytest.approx(samples, rel=0.5)


def test_the_document_has_the_next_best_and_the_sensitivity(by_deadline):
    study, content = by_deadline
    winner = content["winner"]
    assert winner["seeds"] == content["confidence"]["reaches_the_target"] == SEEDS
    assert content["confidence"]["summary"].startswith(f"it reaches the target with {SEEDS} of {SEEDS} seeds")
    assert winner["money"]["low"] <= winner["money"]["mean"] <= winner["money"]["high"]
    assert sum(winner["stalls"]["shares"].values()) == pytest.approx(1)
    assert content["next_best"]["candidate"] != winner["candidate"]
    assert "dearer" in content["next_best"]["why"]
    assert [each["with"] for each in content["sensitivity"]] == ["one more hour", "one more machine"]
    assert content["sensitivity"][1]["seconds"] <= winner["runs"][0]["seconds"]
    assert re.search(r"; \d[\d,]* % (dearer|cheaper)$", content["sensitivity"][1]["summary"])
    assert {each["candidate"] for each in content["pareto"]} >= {winner["candidate"]}
    named = {each["candidate"] for each in content["rejected"]}
    assert named == {each.name for each in study.candidates} - {winner["candidate"]} | {"strange"}
    assert all(each["reason"] for each in content["rejected"])
    assert json.loads((study.output / DOCUMENT).read_text())["winner"]["candidate"] == winner["candidate"]


def test_every_candidate_is_compared_with_the_winner(by_deadline):
    _, content = by_deadline
    for each in content["candidates"]:
        is_best = each["candidate"] == content["winner"]["candidate"]
        assert bool(each["why_not"]) != is_best
    assert any(each["why_not"].endswith("of the progress") for each in content["candidates"] if not each["seeds"])
    assert content["winner"]["tied"] == []


def test_checkpoints_are_removed_once_there_is_a_winner(by_deadline, tmp_path):
    study, content = by_deadline
    assert not [*study.output.glob("*/checkpoint*")]
    paused = [each.run for each in study.race.observed.values() if each.run.manifest["status"] == "interrupted"]
    assert len(paused) > 1
    assert all(len(run.metrics()) for run in paused)

    # After a kill during the removal, it removes the others and runs nothing.
    shutil.copytree(study.output, tmp_path / "out")
    file = tmp_path / "out" / paused[0].folder.name / "checkpoint.pt"
    file.write_bytes(b"left")
    assert json_bytes(recommended(tmp_path, DEADLINE, lambda title, jobs: False)[1]) == json_bytes(content)
    assert not file.exists()


def test_the_test_set_is_not_used(by_deadline):
    study, content = by_deadline
    assert content["target"]["held_out"] == 0.1
    for name in study.race.observed:
        assert study.race.observed[name].run.evaluated_on == "validation"


def test_the_winners_scenario_can_be_run(by_deadline):
    study, content = by_deadline
    scenario = load(study.output / WINNER)
    assert scenario.duration == DEADLINE.deadline
    assert scenario.target_accuracy == study.target
    assert scenario.workload.validation == 0
    assert scenario.system.name == content["winner"]["system"]
    assert len(scenario.cluster.workers) == 2
    assert scenario.description == content["summary"]


def test_longer_runs_in_the_folder_change_nothing(tried, by_deadline):
    """Not even the number of samples: decisions use runs up to the end of a rung."""
    _, content = by_deadline

    def refuse(title, jobs):
        return title == "what if" and in_this_process(title, jobs)

    assert json_bytes(recommended(tried, DEADLINE, refuse)[1]) == json_bytes(content)


def test_an_impossible_deadline_gives_what_is_needed(tried):
    study, content = recommended(tried, Goal(deadline=8.0))
    assert content["winner"] is None
    needed = content["needed"]
    assert needed["seeds"] == 1
    assert 8.0 < needed["seconds"]["mean"] <= 32.0
    assert "deadline 8 s" in content["summary"]
    assert needed["in_words"] in content["summary"]
    assert not (study.output / WINNER).exists()


def test_beyond_the_bound_the_most_promising_candidates_continue(tmp_path):
    study = study_of(tmp_path, Goal(deadline=5.0), counts=(2,), systems=("ring_allreduce",))
    assert study.run(in_this_process, "cpu")
    content = write_recommendation(study)
    needed = content["needed"]
    assert needed["seeds"] == 1
    assert needed["seconds"]["mean"] <= min(each["seconds"]["mean"] for each in content["candidates"])


def test_needs_beyond_all_runs_are_extrapolated(tmp_path):
    study = study_of(tmp_path, Goal(deadline=4.0), counts=(1,), systems=("ring_allreduce",), target_accuracy=0.97)
    assert study.run(in_this_process, "cpu")
    content = write_recommendation(study)
    assert content["winner"] is None
    assert content["needed"]["estimated"] == "at the least"
    assert content["needed"]["seconds"]["mean"] > 16.0
    assert "extrapolated" in content["summary"]
    assert {each["candidate"] for each in content["rejected"]} == {each.name for each in study.candidates} | {"strange"}
    assert [*study.output.glob("*/checkpoint.pt")], "a later deadline continues from them"


def test_a_killed_study_resumes_to_the_same_result(tmp_path, monkeypatch, by_deadline):
    _, content = by_deadline
    study = study_of(tmp_path, DEADLINE, **SMALL)
    options = ["--counts", "2", "--systems", "dlion,ring_allreduce", "--seeds", str(SEEDS), "--catalog", "catalog.csv"]
    monkeypatch.chdir(tmp_path)
    killed(4, "recommend", "learn.yaml", "-o", "out", "--deadline", "60 s", *options, "--quiet")
    assert [*study.output.glob("*/summary.json")]
    assert not (study.output / DOCUMENT).exists()
    assert json_bytes(recommended(tmp_path, DEADLINE)[1]) == json_bytes(content)
