"""Shipped sweeps and searches are valid."""

import re
from pathlib import Path

import pytest

from dlion_sim.scenario import find_sweep, shipped
from dlion_sim.scenario.shipped import name_of, shipped_sweeps
from dlion_sim.sweep import Search, check, load_search, load_sweep

PAGE = (Path(__file__).parents[2] / "docs" / "sweeps.md").read_text()


@pytest.mark.parametrize(
    ("name", "runs"),
    [
        ("sweeps/digits", 45),
        ("sweeps/drift", 30),
        ("sweeps/failure_interval", 84),
        ("sweeps/gpt_rates", 63),
        ("sweeps/gpt_regions", 189),
        ("sweeps/preemption", 15),
        ("sweeps/paper_systems", 150),
        ("sweeps/shakespeare", 12),
    ],
)
def test_shipped_sweeps_are_valid(name, runs):
    points = load_sweep(find_sweep(name))
    assert len(points) == runs
    check(points)


def test_searches_are_valid(tmp_path):
    page = tmp_path / "sweep.yaml"
    page.write_text(re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[2])
    for file in (page, find_sweep("sweeps/digits_search")):
        search = Search(load_search(file), load_sweep(file), tmp_path, keep=False)
        assert (search.remaining, search.runs_per_trial) == (20, 2)
        search.check()


def test_sweeps_are_listed_apart_from_scenarios():
    assert {name_of(file) for file in shipped_sweeps()} == {
        "sweeps/bounded_loss",
        "sweeps/digits",
        "sweeps/digits_search",
        "sweeps/drift",
        "sweeps/failure_interval",
        "sweeps/gpt_rates",
        "sweeps/gpt_regions",
        "sweeps/preemption",
        "sweeps/paper_systems",
        "sweeps/shakespeare",
    }
    assert not [file for file in shipped() if "sweeps" in file.parts]
