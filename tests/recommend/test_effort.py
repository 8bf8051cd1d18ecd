"""Candidates and seeds that fit into a wall time."""

from collections import Counter

import pytest

from dlion_sim.recommend import write_recommendation
from dlion_sim.recommend.effort import FILE, fitted
from dlion_sim.sweep import Estimate
from tests.recommend.digits import in_this_process
from tests.recommend.test_own_machines import own_study

SYSTEMS = ("dlion", "ring_allreduce", "local_sgd")  # 2, 1 and 2 variants, with three rates each


@pytest.fixture(scope="module")
def candidates(tmp_path_factory):
    return own_study(tmp_path_factory.mktemp("study"), systems=SYSTEMS).candidates


def test_all_of_them_fit_into_much_time(candidates):
    chosen = fitted(candidates, 3, 7, per_run=10.0, seconds=3600.0)
    assert (len(chosen.candidates), chosen.seeds, chosen.left_out) == (15, 3, [])
    assert chosen.summary == "effort 60 min: 15 of 15 candidates, 3 of 3 seeds, estimated to take up to 4.67 min"


def test_seeds_are_fewer_before_half_of_the_candidates_are_left_out(candidates):
    for seconds, count, seeds in ((280, 15, 3), (220, 9, 3), (200, 10, 2), (180, 8, 2), (160, 9, 1), (100, 3, 1)):
        chosen = fitted(candidates, 3, 7, per_run=10.0, seconds=seconds)
        assert (len(chosen.candidates), chosen.seeds) == (count, seeds)
        assert len(chosen.candidates) + len(chosen.left_out) == 15


def test_every_system_has_a_candidate_at_the_rate_of_the_scenario_first(candidates):
    chosen = fitted(candidates, 1, 7, per_run=10.0, seconds=100.0)
    kept = [each for each in candidates if each.name in chosen.candidates]
    assert Counter(each.labels["system"] for each in kept) == dict.fromkeys(SYSTEMS, 1)
    assert {each.labels["learning_rate"] for each in kept} == {"0.05"}
    assert "left out: dlion, n min 0.85, learning rate 0.0125; " in chosen.summary
    assert chosen.summary.endswith("; and 8 more")


def test_too_little_time_leaves_two(candidates):
    chosen = fitted(candidates, 3, 7, per_run=10.0, seconds=1.0)
    assert (len(chosen.candidates), chosen.seeds) == (2, 1)
    tried = {each.labels["system"] for each in candidates if each.name in chosen.candidates}
    assert f"; systems not tried at all: {', '.join(sorted({*SYSTEMS} - tried))}; left out" in chosen.summary
    assert "estimated to take up to 90 s" in chosen.summary


def test_a_study_continues_with_its_choice(tmp_path, monkeypatch):
    def limited(seconds):
        study = own_study(tmp_path, systems=SYSTEMS, target_accuracy=0.3)
        study.limit(seconds, 1, "cpu")
        return study

    monkeypatch.setattr("dlion_sim.recommend.study.estimate", lambda *_, **__: Estimate(75.0, 75.0, 150.0))
    study = limited(100.0)
    assert len(study.candidates) == 3
    assert not study.output.exists()
    assert study.run(in_this_process, "cpu")
    content = write_recommendation(study)
    assert len(content["effort"]["left_out"]) == 12
    assert content["confidence"]["seeds"] == 1
    assert {each["candidate"] for each in content["candidates"]} <= {each.name for each in study.candidates}

    monkeypatch.setattr("dlion_sim.recommend.study.estimate", lambda *_, **__: Estimate(1.0, 1.0, 1.0))
    assert limited(100.0).effort == study.effort
    assert len(limited(50.0).candidates) == 15
    (study.output / FILE).write_text("{")
    assert len(limited(100.0).candidates) == 15
