"""What happens when, also after the event queue was saved and loaded."""

import math
import pickle
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlion_sim.simulation.event_queue import EventQueue
from tests.simulation.agendas import finish


class Story:
    """Calls that note when they are made, and plan further ones."""

    def __init__(self) -> None:
        self.event_queue = EventQueue()
        self.told: list[tuple[float, str]] = []

    def tell(self, name: str, further: tuple[float, ...] = ()) -> None:
        self.told.append((self.event_queue.now, name))
        for number, delay in enumerate(further):
            self.event_queue.after(delay, partial(self.tell, f"{name}.{number}", further[1:]))
            self.event_queue.late(partial(self.tell, f"{name}.{number} late"))


def test_calls_of_one_instant_are_made_as_planned_and_late_ones_last():
    story = Story()
    story.event_queue.after(1.0, partial(story.tell, "first", (0.0,)))
    story.event_queue.after(1.0, partial(story.tell, "second"))
    story.event_queue.after(math.inf, partial(story.tell, "never"))
    finish(story.event_queue)
    assert story.told == [(1.0, "first"), (1.0, "second"), (1.0, "first.0"), (1.0, "first.0 late")]


def test_time_passes_without_calls():
    event_queue = EventQueue()
    event_queue.advance(2.5)
    event_queue.advance(2.5)
    assert event_queue.now == 2.5
    assert event_queue.next_time == math.inf


def test_what_is_in_the_background_is_no_sign_that_anything_goes_on():
    story = Story()
    story.event_queue.after(1.0, partial(story.tell, "background"), background=True)
    assert story.event_queue.is_idle
    story.event_queue.after(2.0, partial(story.tell, "work"))
    saved = pickle.loads(pickle.dumps(story))
    for each in (story, saved):
        idle = []
        while each.event_queue.next_time < math.inf:
            idle.append(each.event_queue.is_idle)
            each.event_queue.step()
        assert idle == [False, False]
        assert each.event_queue.is_idle
        assert each.told == [(1.0, "background"), (2.0, "work")]


delays = st.floats(0, 1e3, allow_nan=False)


@given(st.lists(st.tuples(delays, st.lists(delays, max_size=3).map(tuple)), max_size=6), st.integers(0, 12))
def test_what_was_saved_goes_on_to_the_bit(plans, steps):
    whole = Story()
    for number, (delay, further) in enumerate(plans):
        whole.event_queue.after(delay, partial(whole.tell, str(number), further))
    for _ in range(steps):
        if whole.event_queue.next_time < math.inf:
            whole.event_queue.step()
    saved = pickle.loads(pickle.dumps(whole))
    assert saved.event_queue.now == whole.event_queue.now
    finish(whole.event_queue)
    finish(saved.event_queue)
    assert saved.told == whole.told


def test_a_time_is_kept_although_the_rest_of_the_way_is_rounded():
    time, misled = 20.0 + math.ulp(20.0), 0
    for number in range(64):
        story = Story()
        story.event_queue.after(time, partial(story.tell, "end"))
        story.event_queue.advance(1.1 + number * math.ulp(1.1))
        now = story.event_queue.now
        misled += now + (time - now) != time
        saved = pickle.loads(pickle.dumps(story))
        finish(saved.event_queue)
        assert saved.told == [(time, "end")]
    assert misled


@pytest.mark.parametrize("late", [False, True])
def test_what_is_planned_for_this_instant_is_saved_too(late):
    story = Story()
    story.event_queue.advance(3.0)
    (story.event_queue.late if late else partial(story.event_queue.after, 0.0))(partial(story.tell, "now"))
    saved = pickle.loads(pickle.dumps(story))
    finish(saved.event_queue)
    assert saved.told == [(3.0, "now")]
