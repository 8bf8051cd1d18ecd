"""What links carried, and how full their ways were, by interval."""

import numpy as np
import pytest

from dlion_sim.analysis.traffic import utilization
from dlion_sim.report import links as module
from dlion_sim.report.links import links_over
from dlion_sim.results import Run
from tests.analysis.test_traffic import SCENARIO_OF_THREE
from tests.made_up import made_up_run
from tests.report.large import large_run
from tests.report.test_run_page import changed
from tests.report.test_timeline import unpacked


@pytest.fixture
def run(tmp_path):
    made_up_run(tmp_path / "run", workers=3)
    (tmp_path / "run" / "scenario.yaml").write_text(SCENARIO_OF_THREE)
    return Run.open(tmp_path / "run")


def over(run, end):
    told = links_over(run, run.metrics(), run.links(), end)
    shape = len(told["pairs"]), len(told["edges"]) - 1
    return told, {name: unpacked(told[name]).reshape(shape) for name in ("rate", "full", "n_percent") if told[name]}


def test_rates_are_those_of_the_intervals(run):
    told, tables = over(run, 20.0)
    assert told["pairs"] == [(0, 1), (1, 2), (2, 0)]
    assert told["edges"] == [0.0, 10.0, 20.0]
    assert tables["rate"].tolist() == [[8e5, 8e5]] * 3
    assert tables["n_percent"].tolist() == [[5.0, 10.0]] * 3
    assert [node["cloud"] for node in told["nodes"]] == ["east"] * 3


def test_the_fullest_thing_on_the_way_counts_at_the_capacity_of_the_interval(run):
    _, tables = over(run, 20.0)
    # The uplink of the third worker has 1 and then 3 Mbps.
    assert tables["full"] == pytest.approx(np.array([[0.2, 0.2], [0.8, 0.8], [0.8, 0.8]]))


def test_over_one_interval_it_is_what_crossings_have_over_the_run(run, monkeypatch):
    monkeypatch.setattr(module, "_MAX_INTERVALS", 1)
    told, tables = over(run, 20.0)
    assert told["edges"] == [0.0, 20.0]
    expected = utilization(run).groupby("sender")["full"].max()
    assert tables["full"].ravel().tolist() == pytest.approx(expected.tolist())


def test_of_the_links_between_two_clouds_the_fullest_counts(run, monkeypatch):
    monkeypatch.setattr(module, "_MAX_LINKS", 2)
    told, _ = over(changed(run, clouds=["east", "west", "west"]), 20.0)
    assert told["pairs"] == [(0, 1), (1, 0)]  # what stays within a cloud is left out first
    assert told["hidden"] == 1
    monkeypatch.setattr(module, "_MAX_LINKS", 1)
    told, _ = over(changed(run, clouds=["east", "east", "west"]), 20.0)
    assert (told["pairs"], told["hidden"]) == ([(0, 1)], 2)
    full = module._by_cloud(["a", "a", "b"], [(0, 2), (1, 2)], {}, np.array([[0.2, np.nan], [0.7, 0.1]]))[3]
    assert full.tolist() == [[0.7, 0.1]]


def test_too_many_links_are_told_by_pair_of_clouds(tmp_path):
    run = large_run(tmp_path / "run", workers=100, iterations=50)
    told, tables = over(run, 50.0)
    assert len(told["nodes"]) == 10
    assert (told["total"], told["hidden"]) == (100, 0)
    assert len(told["pairs"]) == 20
    seconds = np.diff(told["edges"])
    assert (tables["rate"] * seconds).sum() / 8 == pytest.approx(run.links()["bytes"].sum())
    within = [a == b for a, b in told["pairs"]]
    assert tables["rate"][within, 0].tolist() == pytest.approx([9 * 8000.0] * 10)


def test_of_too_many_pairs_those_between_clouds_come_first(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_MAX_LINKS", 12)
    told, _ = over(large_run(tmp_path / "run", workers=100, iterations=50), 50.0)
    assert told["hidden"] == 8
    assert sum(a != b for a, b in told["pairs"]) == 10


def test_a_run_that_sent_nothing_has_none(tmp_path):
    run = made_up_run(tmp_path / "run", workers=1)
    assert links_over(run, run.metrics(), run.links(), 20.0) is None
