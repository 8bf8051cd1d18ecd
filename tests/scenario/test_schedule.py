from __future__ import annotations

import math
from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlion_sim.scenario import Schedule


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    """Whole numbers throughout, so that sums and periods are exact."""
    gaps = draw(st.lists(st.integers(1, 20), max_size=5))
    times = [sum(gaps[:number]) for number in range(len(gaps) + 1)]
    values = [draw(st.integers(1, 9)), *(draw(st.integers(0, 9)) for _ in gaps)]
    repeat = draw(st.none() | st.integers(1, 20).map(lambda gap: float(times[-1] + gap)))
    return Schedule(tuple((float(time), float(value)) for time, value in zip(times, values, strict=True)), repeat)


def integral(schedule: Schedule, start: float, end: float) -> float:
    """By walking the changes one after another."""
    within = [time for time, _ in islice(schedule.changes(), 3000) if start < time < end]
    return sum(schedule.value_at(a) * (b - a) for a, b in pairwise([start, *within, end]))


@given(schedules())
def test_value_at_follows_the_changes(schedule: Schedule) -> None:
    assert schedule.value_at(0.0) == schedule.steps[0][1]
    for time, value in islice(schedule.changes(), 40):
        assert schedule.value_at(time) == value


@given(schedules(), st.integers(0, 100), st.integers(1, 500))
def test_finish_time_is_when_the_integral_reaches_the_work(schedule: Schedule, start: int, work: int) -> None:
    finish = schedule.finish_time(float(start), float(work))
    if math.isinf(finish):
        assert schedule.repeat is None
        assert schedule.steps[-1][1] == 0
        assert integral(schedule, start, start + 1000.0) < work
    else:
        assert integral(schedule, start, finish) == pytest.approx(work)
        assert schedule.value_at(math.nextafter(finish, 0)) > 0 or finish == start  # no later than needed


def test_constant_is_exact() -> None:
    schedule = Schedule.constant(3.0)
    assert schedule.is_constant
    assert list(schedule.changes()) == []
    assert schedule.finish_time(0.1, 10.0) == 0.1 + 10.0 / 3.0


def test_many_periods_are_skipped_not_walked() -> None:
    schedule = Schedule(((0.0, 1.0), (1.0, 0.0)), repeat=2.0)
    assert schedule.finish_time(0.0, 1e9) == 2e9 - 1
    assert schedule.finish_time(0.5, 1e9) == 2e9 + 0.5


def test_work_during_a_permanent_outage_never_finishes() -> None:
    schedule = Schedule(((0.0, 2.0), (10.0, 0.0)))
    assert schedule.finish_time(4.0, 12.0) == 10.0
    assert schedule.finish_time(4.0, 13.0) == math.inf
    assert schedule.finish_time(11.0, 0.0) == 11.0


@pytest.mark.parametrize(
    ("steps", "repeat", "words"),
    [
        ((), None, "at 0 s"),
        (((1.0, 1.0),), None, "at 0 s"),
        (((0.0, 0.0),), None, "outage"),
        (((0.0, 1.0), (5.0, 2.0), (5.0, 3.0)), None, "5 s comes after 5 s"),
        (((0.0, 1.0), (5.0, -1.0)), None, "0 or more"),
        (((0.0, 1.0), (5.0, 2.0)), 5.0, "after its last step, which is at 5 s"),
    ],
)
def test_refuses(steps: tuple[tuple[float, float], ...], repeat: float | None, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Schedule(steps, repeat)


def test_an_interrupted_schedule_continues_during_outages() -> None:
    steps = Schedule(((0.0, 4.0), (2.0, 6.0)), repeat=4.0)
    found = steps.interrupted([(1.0, 3.0), (5.0, math.inf)], 7.0)
    assert found == Schedule(((0.0, 4.0), (1.0, 0.0), (2.0, 0.0), (3.0, 6.0), (4.0, 4.0), (5.0, 0.0), (6.0, 0.0)))
    with pytest.raises(ValueError, match="changes more than 1000000 times"):
        Schedule(((0.0, 1.0), (1.0, 2.0)), repeat=2.0).interrupted([], math.inf)
