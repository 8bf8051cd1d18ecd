"""Who was there, what systems came to meanwhile, and what was in vain."""

import pytest
from matplotlib.figure import Figure

from dlion_sim.analysis import group_runs
from dlion_sim.analysis.curves import availability, goodput
from dlion_sim.errors import InputError
from dlion_sim.figures import plot_availability
from dlion_sim.simulation import simulate
from tests.simulation.scenarios import digits

AWAY = {"workers": {"west/0": {"down": [["0.5 s", "1.5 s"]]}, "east/0": {"down": [["0 s", "1 s"]]}}}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return [
        simulate(
            digits("workload.evaluate_every=0.5 s", duration="2 s", system=system, seed=seed, availability=AWAY),
            folder / f"{system}-{seed}",
            device="cpu",
        )
        for system in ("baseline", "ako")
        for seed in (1, 2)
    ]


def test_how_many_are_there_is_known_at_any_time(runs):
    there = availability(runs[0])
    assert there.to_dict() == {0.0: 2, 0.5: 1, 1.0: 2, 1.5: 3, 2.0: 3}


def test_goodput_is_what_was_computed_a_second(runs):
    told = runs[2].summary["availability"]
    useful, lost = goodput(runs[2])
    assert told["computed"] > told["useful"] > 0
    assert 2.0 * useful == pytest.approx(told["useful"])
    assert 2.0 * (useful + lost) == pytest.approx(told["computed"])


def test_it_is_drawn_over_one_time(runs, tmp_path, monkeypatch):
    drawn = []
    whole = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda self, *args, **keys: (drawn.append(self), whole(self, *args, **keys)))
    assert plot_availability(group_runs(runs), tmp_path / "figure.png").stat().st_size > 10_000
    count, scores, bars = drawn[0].axes
    assert len(count.lines) == 2, "a line for each seed"
    assert all(float(tick).is_integer() for tick in count.get_yticks()), "there is no half a worker"
    assert count.get_xlim() == scores.get_xlim()
    assert [len(scores.lines), len(bars.patches)] == [2, 4]
    assert "useful" in bars.texts[0].get_text()


def test_what_was_useful_stands_beside_the_bars_within_the_figure(runs, tmp_path, monkeypatch):
    drawn = []
    whole = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda self, *args, **keys: (drawn.append(self), whole(self, *args, **keys)))
    plot_availability(group_runs(runs), tmp_path / "figure.png")
    (figure,) = drawn
    bars = figure.axes[2]
    figure.draw_without_rendering()
    for text in bars.texts:
        box = text.get_window_extent()
        assert box.x0 >= bars.bbox.x1
        assert box.x1 <= figure.bbox.x1


def test_a_run_in_which_nobody_could_go_is_refused(tmp_path):
    run = simulate(digits(duration="1 s"), tmp_path / "run", device="cpu")
    with pytest.raises(InputError, match="has no availability"):
        plot_availability(group_runs([run]), tmp_path / "figure.png")
