"""The order of calls, also after saving and loading the event queue."""

import math
import pickle
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlion_sim.simulation.event_queue import EventQueue
from tests.simulation.agendas import finish


class Story:
    """Calls that record their times, and schedule further ones."""

    def __init__(self) -> None:
        self.event_queue = EventQueue()
        self.told: list[tuple[float, str]] = []

    def tell(self, name: str, further: tuple[float, ...] = ()) -> None:
        self.told.append((self.event_queue.now, name))
        for number, delay in enumerate(further):
            self.event_queue.after(delay, partial(self.tell, f"{name}.{number}", further[1:]))
            self.event_queue.late(partial(self.tell, f"{name}.{number} late"))


def test_calls_of_one_instant_are_made_in_the_order_of_scheduling_and_late_calls_last():
    story = Story()
    story.event_queue.after(1.0, partial(story.tell, "first", (0.0,)))
    story.event_queue.after(1.0, partial(story.tell, "second"))
    story.event_queue.after(math.inf, partial(story.tell, "never"))
    finish(story.event_queue)
    assert story.told == [(1.0, "first"), (1.0, "second"), (1.0, "first.0"), (1.0, "first.0 late")]


def test_an_event_queue_with_background_calls_only_is_idle():
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
def test_a_saved_event_queue_continues_to_the_bit(plans, steps):
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


def test_times_are_exact_after_saving():
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
def test_calls_of_the_present_instant_are_saved(late):
    story = Story()
    story.event_queue.advance(3.0)
    (story.event_queue.late if late else partial(story.event_queue.after, 0.0))(partial(story.tell, "now"))
    saved = pickle.loads(pickle.dumps(story))
    finish(saved.event_queue)
    assert saved.told == [(3.0, "now")]
