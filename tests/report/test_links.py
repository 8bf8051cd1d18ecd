"""Rates of links and the utilization of their routes, by interval."""

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
    data = links_over(run, run.metrics(), run.links(), end)
    shape = len(data["pairs"]), len(data["edges"]) - 1
    return data, {name: unpacked(data[name]).reshape(shape) for name in ("rate", "full", "n_percent") if data[name]}


def test_rates_are_those_of_the_intervals(run):
    data, tables = over(run, 20.0)
    assert data["pairs"] == [(0, 1), (1, 2), (2, 0)]
    assert data["edges"] == [0.0, 10.0, 20.0]
    assert tables["rate"].tolist() == [[8e5, 8e5]] * 3
    assert tables["n_percent"].tolist() == [[5.0, 10.0]] * 3
    assert [node["cloud"] for node in data["nodes"]] == ["east"] * 3


def test_utilization_is_of_the_fullest_link_in_each_interval(run):
    _, tables = over(run, 20.0)
    # The uplink of the third worker has 1 and then 3 Mbps.
    assert tables["full"] == pytest.approx(np.array([[0.2, 0.2], [0.8, 0.8], [0.8, 0.8]]))


def test_over_one_interval_it_equals_the_runs_utilization(run, monkeypatch):
    monkeypatch.setattr(module, "_MAX_INTERVALS", 1)
    data, tables = over(run, 20.0)
    assert data["edges"] == [0.0, 20.0]
    expected = utilization(run).groupby("sender")["full"].max()
    assert tables["full"].ravel().tolist() == pytest.approx(expected.tolist())


def test_pairs_of_clouds_replace_too_many_links(run, monkeypatch):
    monkeypatch.setattr(module, "_MAX_LINKS", 2)
    data, _ = over(changed(run, clouds=["east", "west", "west"]), 20.0)
    assert data["pairs"] == [(0, 1), (1, 0)]  # what stays within a cloud is left out first
    assert data["hidden"] == 1
    monkeypatch.setattr(module, "_MAX_LINKS", 1)
    data, _ = over(changed(run, clouds=["east", "east", "west"]), 20.0)
    assert (data["pairs"], data["hidden"]) == ([(0, 1)], 2)


def test_many_links_are_shown_by_pair_of_clouds(tmp_path):
    run = large_run(tmp_path / "run", workers=100, iterations=50)
    data, tables = over(run, 50.0)
    assert len(data["nodes"]) == 10
    assert (data["total"], data["hidden"]) == (100, 0)
    assert len(data["pairs"]) == 20
    seconds = np.diff(data["edges"])
    assert (tables["rate"] * seconds).sum() / 8 == pytest.approx(run.links()["bytes"].sum())
    within = [a == b for a, b in data["pairs"]]
    assert tables["rate"][within, 0].tolist() == pytest.approx([9 * 8000.0] * 10)


def test_pairs_between_clouds_come_first(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_MAX_LINKS", 12)
    data, _ = over(large_run(tmp_path / "run", workers=100, iterations=50), 50.0)
    assert data["hidden"] == 8
    assert sum(a != b for a, b in data["pairs"]) == 10


def test_a_run_without_traffic_has_no_links(tmp_path):
    run = made_up_run(tmp_path / "run", workers=1)
    assert links_over(run, run.metrics(), run.links(), 20.0) is None
