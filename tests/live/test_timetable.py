"""What is done at certain times of a run."""

import subprocess
import time
from functools import partial
from threading import Event

import pytest

from dlion_sim.live import Clock, Timetable


def say(what: str, after: float):
    """A process that says something, or nothing, after a while."""
    return subprocess.Popen(["sh", "-c", f"sleep {after}; {what}"], stdout=subprocess.PIPE)


def test_it_is_done_at_its_times_since_the_run_begins():
    done, second = [], Event()

    def do(at):
        done.append((at, time.monotonic() - began))
        if at == 0.4:
            second.set()

    plan = ((at, partial(do, at)) for at in (0.2, 0.4, 600))
    began = time.monotonic()
    with Timetable() as timetable, say("echo begun; sleep 600", after=0.2) as node:
        timetable.follow(Clock(node.stdout, "begun"), plan)
        assert timetable.next_time == 0.2
        assert second.wait(60)
        while timetable.next_time != 600:
            time.sleep(0.01)
        node.kill()
    assert timetable.next_time is None
    assert timetable.most_seconds_late > 0
    assert [at for at, _ in done] == [0.2, 0.4]
    assert all(seconds > 0.2 + at for at, seconds in done)


@pytest.mark.parametrize("said", ["true", "echo begun or so; echo has begun"])
def test_nothing_is_done_if_it_never_begins(said):
    done = []
    with Timetable() as timetable, say(said, after=0) as node:
        timetable.follow(Clock(node.stdout, "begun"), iter([(1e-9, lambda: done.append(1))]))
    assert not done
    assert timetable.next_time is None


def test_what_goes_wrong_is_raised_at_the_end():
    refused = Event()

    def refuse():
        refused.set()
        raise RuntimeError("the kernel refuses")

    def meanwhile():
        with Timetable() as timetable, say("echo begun", after=0) as node:
            timetable.follow(Clock(node.stdout, "begun"), iter([(0.01, refuse)]))
            assert refused.wait(60)
            while timetable.next_time is not None:
                time.sleep(0.01)

    with pytest.raises(RuntimeError, match="refuses"):
        meanwhile()
