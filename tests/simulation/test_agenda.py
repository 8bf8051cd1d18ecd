"""What happens when, also after the agenda was saved and loaded."""

import math
import pickle
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlion_sim.simulation.agenda import Agenda
from tests.simulation.agendas import finish


class Story:
    """Calls that note when they are made, and plan further ones."""

    def __init__(self) -> None:
        self.agenda = Agenda()
        self.told: list[tuple[float, str]] = []

    def tell(self, name: str, further: tuple[float, ...] = ()) -> None:
        self.told.append((self.agenda.now, name))
        for number, delay in enumerate(further):
            self.agenda.after(delay, partial(self.tell, f"{name}.{number}", further[1:]))
            self.agenda.late(partial(self.tell, f"{name}.{number} late"))


def test_calls_of_one_instant_are_made_as_planned_and_late_ones_last():
    story = Story()
    story.agenda.after(1.0, partial(story.tell, "first", (0.0,)))
    story.agenda.after(1.0, partial(story.tell, "second"))
    story.agenda.after(math.inf, partial(story.tell, "never"))
    finish(story.agenda)
    assert story.told == [(1.0, "first"), (1.0, "second"), (1.0, "first.0"), (1.0, "first.0 late")]


def test_time_passes_without_calls():
    agenda = Agenda()
    agenda.advance(2.5)
    agenda.advance(2.5)
    assert agenda.now == 2.5
    assert agenda.next_time == math.inf


def test_what_is_in_the_background_is_no_sign_that_anything_goes_on():
    story = Story()
    story.agenda.after(1.0, partial(story.tell, "background"), background=True)
    assert story.agenda.is_idle
    story.agenda.after(2.0, partial(story.tell, "work"))
    saved = pickle.loads(pickle.dumps(story))
    for each in (story, saved):
        idle = []
        while each.agenda.next_time < math.inf:
            idle.append(each.agenda.is_idle)
            each.agenda.step()
        assert idle == [False, False]
        assert each.agenda.is_idle
        assert each.told == [(1.0, "background"), (2.0, "work")]


delays = st.floats(0, 1e3, allow_nan=False)


@given(st.lists(st.tuples(delays, st.lists(delays, max_size=3).map(tuple)), max_size=6), st.integers(0, 12))
def test_what_was_saved_goes_on_to_the_bit(plans, steps):
    whole = Story()
    for number, (delay, further) in enumerate(plans):
        whole.agenda.after(delay, partial(whole.tell, str(number), further))
    for _ in range(steps):
        if whole.agenda.next_time < math.inf:
            whole.agenda.step()
    saved = pickle.loads(pickle.dumps(whole))
    assert saved.agenda.now == whole.agenda.now
    finish(whole.agenda)
    finish(saved.agenda)
    assert saved.told == whole.told


def test_a_time_is_kept_although_the_rest_of_the_way_is_rounded():
    time, misled = 20.0 + math.ulp(20.0), 0
    for number in range(64):
        story = Story()
        story.agenda.after(time, partial(story.tell, "end"))
        story.agenda.advance(1.1 + number * math.ulp(1.1))
        now = story.agenda.now
        misled += now + (time - now) != time
        saved = pickle.loads(pickle.dumps(story))
        finish(saved.agenda)
        assert saved.told == [(time, "end")]
    assert misled


@pytest.mark.parametrize("late", [False, True])
def test_what_is_planned_for_this_instant_is_saved_too(late):
    story = Story()
    story.agenda.advance(3.0)
    (story.agenda.late if late else partial(story.agenda.after, 0.0))(partial(story.tell, "now"))
    saved = pickle.loads(pickle.dumps(story))
    finish(saved.agenda)
    assert saved.told == [(3.0, "now")]
