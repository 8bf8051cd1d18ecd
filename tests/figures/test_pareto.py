"""Time against money, from made-up points."""

import re

import pytest

from dlion_sim.errors import InputError
from dlion_sim.figures import plot_pareto
from dlion_sim.figures.looks import system_look
from dlion_sim.figures.pareto import Point

POINTS = [
    Point("dlion", "p3.2xlarge", 60.0, 2.0, is_measured=True, is_on_front=True, is_best=False),
    Point("dlion", "r5.4xlarge", 7200.0, 0.5, is_measured=True, is_on_front=True, is_best=True),
    Point("diloco", "p3.2xlarge", 9000.0, 40.0, is_measured=False, is_on_front=False, is_best=False),
]


def drawn(file, points=POINTS, **options):
    return plot_pareto(points, "learn", file, **options).read_text()


def test_systems_and_machines_are_named(tmp_path):
    svg = drawn(tmp_path / "a.svg")
    for words in (
        "learn",
        "Time to the target (h)",
        "Cost",
        "dlion",
        "diloco",
        "p3.2xlarge",
        "r5.4xlarge",
        "circled: rec",
    ):
        assert words in svg
    assert system_look("dlion").colour in svg
    assert system_look("diloco").colour in svg


def test_the_region_out_of_bounds_is_shaded(tmp_path):
    shade = "#ededed"
    assert shade not in drawn(tmp_path / "a.svg")
    assert shade in drawn(tmp_path / "b.svg", deadline=3600.0)
    assert shade in drawn(tmp_path / "c.svg", budget=1.0)
    assert shade not in drawn(tmp_path / "d.svg", budget=1000.0)


def test_only_drawn_elements_are_explained(tmp_path):
    told = drawn(tmp_path / "a.svg")
    assert all(words in told for words in ("circled: recommended", "hollow: estimated", "line: Pareto front"))
    told = drawn(tmp_path / "b.svg", POINTS[:1])
    assert not any(words in told for words in ("circled:", "hollow:", "line:"))


def test_figures_are_reproducible_and_may_be_empty(tmp_path):
    assert drawn(tmp_path / "a.svg") == drawn(tmp_path / "b.svg")
    assert re.search("Time to the target", drawn(tmp_path / "c.svg", []))
    assert plot_pareto(POINTS, "learn", tmp_path / "d.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(InputError, match="no supported picture"):
        plot_pareto(POINTS, "learn", tmp_path / "d.txt")
