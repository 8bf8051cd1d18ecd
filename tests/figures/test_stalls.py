"""The bars of where workers' time goes."""

import pandas as pd

from dlion_sim.analysis.stalls.attribution import KINDS, Stalls, stalls
from dlion_sim.figures import plot_stalls
from dlion_sim.figures.stalls import LOOKS
from tests.made_up import made_up_run


def test_every_kind_has_a_look():
    assert tuple(LOOKS) == KINDS
    assert len({colour for colour, _ in LOOKS.values()}) == len(KINDS)


def test_figures_are_reproducible(tmp_path):
    found = stalls(made_up_run(tmp_path / "run"))
    one, other = (plot_stalls(found, tmp_path / name).read_text() for name in ("a.svg", "b.svg"))
    assert one == other
    assert "computing" in one
    assert "profiling" not in one


def test_many_workers_are_drawn_as_micro_clouds(tmp_path):
    run = made_up_run(tmp_path / "run", workers=41)
    shares = pd.DataFrame([[1.0] + [0.0] * (len(KINDS) - 1)] * 41, columns=[*KINDS])
    found = Stalls(run, shares, dict.fromkeys(range(41), 1), pd.DataFrame())
    drawn = plot_stalls(found, tmp_path / "many.svg").read_text()
    assert ">east<" in drawn or "east -->" in drawn
    assert "east/0" not in drawn
