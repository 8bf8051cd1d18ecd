"""Quantities over time, by run and over seeds; and what each worker did when."""

import math

import pandas as pd
import pytest

from dlion_sim.analysis import curves
from dlion_sim.analysis.timeline import sending, spans
from tests.made_up import made_up_run


def test_the_mean_and_the_deviation_of_the_workers(tmp_path):
    run = made_up_run(tmp_path / "run", (0.1, 0.5), workers=3)
    assert curves.mean_metric(run).to_dict() == pytest.approx({0.0: 0.1, 10.0: 0.5})
    assert curves.worker_deviation(run).iloc[1] == pytest.approx(0.02 * math.sqrt(2 / 3))


def test_over_seeds_ends_where_the_first_curve_ends():
    one, two = pd.Series({0.0: 0.0, 10.0: 1.0, 20.0: 2.0}), pd.Series({0.0: 1.0, 15.0: 4.0})
    table = curves.over_seeds([one, two, pd.Series(dtype=float)])
    assert table.index.tolist() == [0, 10, 15]
    assert table["mean"].tolist() == [0.5, 2, 2.75]
    assert table["low"].tolist() == [0, 1, 1.5]
    assert table["high"].tolist() == [1, 3, 4]
    assert curves.over_seeds([]).empty


def test_the_value_at_a_time_is_the_last_one_known():
    curve = pd.Series({0.0: 0.1, 10.0: 0.5})
    assert [curves.at(curve, time) for time in (0, 9, 10)] == [0.1, 0.1, 0.5]
    assert math.isnan(curves.at(curve, 11))
    assert math.isnan(curves.at(curve[1:], 5))


def test_spans_cover_a_workers_time(tmp_path):
    table = spans(made_up_run(tmp_path / "run", (0.1, 0.5)).metrics())
    own = table[table["worker"] == 1]
    assert own["what"].tolist() == ["compute", "wait"] * 10
    assert (own["end"] - own["begin"]).sum() == pytest.approx(10)
    assert own["begin"].iloc[1:].tolist() == pytest.approx(own["end"].iloc[:-1].tolist())


def test_sending_is_a_rate_in_each_interval(tmp_path):
    table = sending(made_up_run(tmp_path / "run", (0.1, 0.5, 0.6)))
    assert table[["begin", "end"]].drop_duplicates().to_numpy().tolist() == [[0, 10], [10, 20]]
    assert table["rate"].tolist() == [0.8e6] * 4


def test_spans_of_a_real_run_do_not_overlap(tmp_path):
    import dlion_sim
    from tests.simulation.scenarios import digits

    table = spans(dlion_sim.simulate(digits("duration=2 s", system="baseline"), tmp_path / "run").metrics())
    for _, own in table.groupby("worker"):
        gaps = own["begin"].to_numpy()[1:] - own["end"].to_numpy()[:-1]
        assert abs(gaps).max() < 1e-9
