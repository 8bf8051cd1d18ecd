"""What is done at certain times of a run."""

import subprocess
import time

import pytest

from dlion_sim.live import Clock, Timetable


def say(what: str, after: float):
    """A process that says something, or nothing, after a while."""
    return subprocess.Popen(["sh", "-c", f"sleep {after}; {what}"], stdout=subprocess.PIPE)


def test_it_is_done_at_its_times_since_the_run_begins():
    done = []
    plan = ((at, lambda: done.append(time.monotonic())) for at in (0.2, 0.4, 60))
    with Timetable() as timetable, say("echo begun; sleep 60", after=0.2) as node:
        timetable.follow(Clock(node.stdout), plan)
        assert timetable.next_time == 0.2
        began = time.monotonic() + 0.2
        time.sleep(1)
        node.kill()
    assert timetable.next_time == 60
    assert 0 < timetable.most_seconds_late < 0.15
    assert [at - began for at in done] == pytest.approx([0.2, 0.4], abs=0.15)


def test_nothing_is_done_if_it_never_begins():
    done = []
    with Timetable() as timetable, say("true", after=0) as node:
        timetable.follow(Clock(node.stdout), iter([(1e-9, lambda: done.append(1))]))
    assert not done


def test_nothing_may_be_planned():
    with Timetable() as timetable, say("echo begun", after=0) as node:
        timetable.follow(Clock(node.stdout), iter(()))
    assert timetable.next_time is None


def test_what_goes_wrong_is_raised_at_the_end():
    def refuse():
        raise RuntimeError("the kernel refuses")

    def meanwhile():
        with Timetable() as timetable, say("echo begun", after=0) as node:
            timetable.follow(Clock(node.stdout), iter([(0.01, refuse)]))
            time.sleep(0.3)

    with pytest.raises(RuntimeError, match="refuses"):
        meanwhile()
