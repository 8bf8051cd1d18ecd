"""Observations of runs up to some time."""

import numpy as np
import pytest

from dlion_sim.recommend.goal import Goal
from dlion_sim.recommend.observed import Curve, estimate
from dlion_sim.recommend.race import Start
from tests.recommend.digits import in_this_process, study_of


def test_the_least_billed_time_is_not_extrapolated(tmp_path):
    """A minute is the least that is billed."""
    study = study_of(tmp_path, Goal(deadline=600.0), counts=(1,), systems=("ring_allreduce",), prices={"egress": 20.0})
    in_both = study.candidates[0]
    start = Start(in_both, 0, 5.0)
    assert study._execute(in_this_process, "", [start], "cpu")
    observation = study.observe(start)
    assert (observation.seconds, observation.reached) == (4.0, None)
    a_minute = in_both.per_hour / 60
    egress = observation.money - a_minute
    assert egress > 0
    assert observation.money_by(40.0) == pytest.approx(a_minute + 10 * egress)
    assert observation.money_by(120.0) == pytest.approx(2 * a_minute + 30 * egress)
    content = estimate(observation, observation)
    assert content.money == pytest.approx(observation.money_by(content.seconds))


def test_curves_are_interpolated_linearly():
    curve = Curve(np.array([0.0, 10.0, 20.0, 30.0]), np.array([0.0, 0.4, 0.4, 0.6]))
    assert [curve.seconds_to(progress) for progress in (0.0, 0.2, 0.5, 0.6)] == [0.0, 5.0, 25.0, 30.0]
    assert curve.seconds_to(0.7) == float("inf")
    assert curve.lower_bound_seconds == pytest.approx(30 + 0.4 / (0.6 / 30))
    assert Curve(np.array([0.0, 10.0]), np.array([0.0, 0.0])).lower_bound_seconds == float("inf")
    steeper = Curve(np.array([0.0, 10.0, 20.0]), np.array([0.0, 0.1, 0.5]))
    assert steeper.lower_bound_seconds == pytest.approx(20 + 0.5 / 0.04)
