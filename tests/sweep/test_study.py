"""What a study chooses, and that it is the same whenever it is asked."""

import math
import sys

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
def test_trials_go_where_the_metric_is_better(tmp_path, metric, sign):
    study = Study(spec(metric=metric), tmp_path)
    learn(study, 40, lambda params: sign * badness(params))
    blind, learnt = ([badness(trial.params) for trial in part] for part in (study.trials[:10], study.trials[30:]))
    assert sum(learnt) < sum(blind) / 2


def test_what_was_never_reached_counts_as_worst(tmp_path):
    study = Study(spec(metric={"time_to_accuracy": 0.9}), tmp_path)
    learn(study, 40, lambda params: math.inf if params["x"] < 0.5 else 1.0)
    assert sum(trial.params["x"] < 0.5 for trial in study.trials[30:]) <= 2
    assert {trial.value for trial in Study(spec(metric={"time_to_accuracy": 0.9}), tmp_path).trials} == {1.0, math.inf}


@pytest.mark.parametrize("sampler", ["tpe", "random"])
def test_what_is_asked_depends_on_the_search_and_the_trials_alone(tmp_path, sampler):
    whole = Study(spec(sampler=sampler), tmp_path / "whole", keep=False)
    learn(whole, 16, badness)
    (tmp_path / "parts").mkdir()
    for _ in range(16):
        learn(Study(spec(sampler=sampler), tmp_path / "parts"), 1, badness)
    parts = Study(spec(sampler=sampler), tmp_path / "parts").trials
    assert [trial.params for trial in parts] == [trial.params for trial in whole.trials]
    other = Study(spec(sampler=sampler, seed=1), tmp_path / "whole", keep=False)
    assert other.ask().params != whole.trials[0].params


def test_trials_under_way_are_kept_with_their_values_and_not_tried_again(tmp_path):
    study = Study(spec(), tmp_path)
    learn(study, 10, badness)
    asked = [study.ask().params for _ in range(6)]
    kept = Study(spec(), tmp_path).trials[10:]
    assert [(trial.state.name, trial.params) for trial in kept] == [("RUNNING", params) for params in asked]
    assert len({params["x"] for params in asked}) == 6


def test_a_failed_trial_has_no_value(tmp_path):
    study = Study(spec(), tmp_path)
    study.fail(study.ask().number)
    learn(study, 12, badness)
    assert (study.trials[0].state.name, study.trials[0].value) == ("FAIL", None)


def test_the_folder_may_have_any_name(tmp_path):
    folder = tmp_path / "{odd}?%20#"
    folder.mkdir()
    asked = Study(spec(), folder).ask()
    assert Study(spec(), folder, keep=False).trials[0].params == asked.params
    assert [file.name for file in folder.iterdir()] == ["study.db"]


def test_looking_leaves_no_file(tmp_path):
    assert not Study(spec(), tmp_path, keep=False).trials
    assert not list(tmp_path.iterdir())


def test_a_foreign_file_is_refused(tmp_path):
    (tmp_path / "study.db").write_text("no database" * 100)
    with pytest.raises(InputError, match=r"study\.db: cannot be used: .*not a database"):
        Study(spec(), tmp_path)


def test_optuna_is_an_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(InputError, match=r"needs the package optuna; allowed: pip install 'dlion-sim\[search\]'"):
        Study(spec(), tmp_path)
