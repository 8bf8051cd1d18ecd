"""Available workers, the metric and goodput under churn."""

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


def test_availability_is_a_step_function(runs):
    there = availability(runs[0])
    assert there.to_dict() == {0.0: 2, 0.5: 1, 1.0: 2, 1.5: 3, 2.0: 3}


def test_goodput_is_per_second(runs):
    told = runs[2].summary["availability"]
    useful, lost = goodput(runs[2])
    assert told["computed"] > told["useful"] > 0
    assert 2.0 * useful == pytest.approx(told["useful"])
    assert 2.0 * (useful + lost) == pytest.approx(told["computed"])


def test_panels_share_the_time_axis(runs, tmp_path, monkeypatch):
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


def test_a_run_without_availability_is_refused(tmp_path):
    run = simulate(digits(duration="1 s"), tmp_path / "run", device="cpu")
    with pytest.raises(InputError, match="has no availability"):
        plot_availability(group_runs([run]), tmp_path / "figure.png")
