"""Trials chosen by Optuna: better with experience, and reproducible."""

import math

import pytest

from dlion_sim.errors import InputError
from dlion_sim.sweep import SearchSpec
from dlion_sim.sweep.study import Study

OVER = {"x": {"uniform": {"from": 0, "to": 1}}, "y": {"range": {"from": 0, "to": 9}}, "z": ["good", "bad"]}


def spec(**keys) -> SearchSpec:
    return SearchSpec.model_validate({"trials": 30, "metric": "accuracy", "over": OVER, **keys})


def badness(params) -> float:
    return abs(params["x"] - 0.3) + abs(params["y"] - 4) / 9 + (params["z"] == "bad")


def learn(study, count, score) -> None:
    for _ in range(count):
        trial = study.ask()
        study.succeed(trial.number, score(trial.params))


@pytest.mark.parametrize(("metric", "sign"), [("accuracy", -1), ("loss", 1), ({"time_to_accuracy": 0.9}, 1)])
def test_later_trials_are_better(tmp_path, metric, sign):
    study = Study(spec(metric=metric), tmp_path)
    learn(study, 40, lambda params: sign * badness(params))
    first, last = ([badness(trial.params) for trial in part] for part in (study.trials[:10], study.trials[30:]))
    assert sum(last) < sum(first) / 2


def test_a_missed_target_is_the_worst_value(tmp_path):
    study = Study(spec(metric={"time_to_accuracy": 0.9}), tmp_path)
    learn(study, 40, lambda params: math.inf if params["x"] < 0.5 else 1.0)
    assert sum(trial.params["x"] < 0.5 for trial in study.trials[30:]) <= 2
    assert {trial.value for trial in Study(spec(metric={"time_to_accuracy": 0.9}), tmp_path).trials} == {1.0, math.inf}


@pytest.mark.parametrize("sampler", ["tpe", "random"])
def test_choices_depend_only_on_the_search_and_its_trials(tmp_path, sampler):
    whole = Study(spec(sampler=sampler), tmp_path / "whole", keep=False)
    learn(whole, 16, badness)
    (tmp_path / "parts").mkdir()
    for _ in range(16):
        learn(Study(spec(sampler=sampler), tmp_path / "parts"), 1, badness)
    parts = Study(spec(sampler=sampler), tmp_path / "parts").trials
    assert [trial.params for trial in parts] == [trial.params for trial in whole.trials]
    other = Study(spec(sampler=sampler, seed=1), tmp_path / "whole", keep=False)
    assert other.ask().params != whole.trials[0].params


def test_active_trials_are_stored_and_not_repeated(tmp_path):
    study = Study(spec(), tmp_path)
    learn(study, 10, badness)
    asked = [study.ask().params for _ in range(6)]
    kept = Study(spec(), tmp_path).trials[10:]
    assert [(trial.state.name, trial.params) for trial in kept] == [("RUNNING", params) for params in asked]
    assert len({params["x"] for params in asked}) == 6


def test_the_folder_may_have_any_name(tmp_path):
    folder = tmp_path / "{odd}?%20#"
    folder.mkdir()
    asked = Study(spec(), folder).ask()
    assert Study(spec(), folder, keep=False).trials[0].params == asked.params
    assert [file.name for file in folder.iterdir()] == ["study.db"]


def test_a_foreign_file_is_refused(tmp_path):
    (tmp_path / "study.db").write_text("no database" * 100)
    with pytest.raises(InputError, match=r"study\.db: cannot be used: .*not a database"):
        Study(spec(), tmp_path)
