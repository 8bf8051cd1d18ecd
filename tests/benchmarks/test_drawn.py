"""Environments that `python -m benchmarks.drawn` draws, and those of the reproduction."""

from benchmarks.drawn import environment, main
from dlion_sim.scenario import load
from tests.pages import ROOT

COMMITTED = ROOT / "scenarios" / "reproduction" / "drawn"


def test_the_committed_environments_are_those_of_seed_two(tmp_path):
    main(["--seed", "2", "--output", str(tmp_path)])
    made = {file.name: file.read_text() for file in tmp_path.iterdir()}
    assert made == {file.name: file.read_text() for file in COMMITTED.iterdir()}
    assert len({str(load(file).cluster) for file in COMMITTED.iterdir()}) == 20


def test_a_number_and_a_seed_decide():
    assert environment(5, seed=3) == environment(5, seed=3)
    assert len({str(environment(*of)["cluster"]) for of in ((5, 3), (5, 4), (6, 3))}) == 3
