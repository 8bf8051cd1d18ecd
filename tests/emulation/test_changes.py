import subprocess
import time
from dataclasses import dataclass, field
from itertools import islice

import pytest

from dlion_sim.emulation.changes import Changes, in_order
from dlion_sim.live import Clock
from dlion_sim.scenario import Schedule


@dataclass
class Wire:
    """A capacity that remembers when it was set to what."""

    schedule: Schedule
    set_to: list[tuple[float, float]] = field(default_factory=list)

    def changes(self):
        return self.schedule.changes()

    def set(self, bps: float) -> None:
        if bps == 13:
            raise RuntimeError("the kernel refuses")
        self.set_to.append((time.monotonic(), bps))


def steps(*steps, repeat=None) -> Schedule:
    return Schedule(steps, repeat)


def say(what: str, after: float):
    """A process that says something, or nothing, after a while."""
    return subprocess.Popen(["sh", "-c", f"sleep {after}; {what}"], stdout=subprocess.PIPE)


def test_all_changes_come_in_the_order_of_time():
    one, other = Wire(steps((0, 1), (2, 3), repeat=4)), Wire(steps((0, 5), (3, 6), (7, 8)))
    fixed = Wire(steps((0, 9)))
    found = list(islice(in_order([one, other, fixed]), 6))
    assert [(at, bps) for at, _, bps in found] == [(2, 3), (3, 6), (4, 1), (6, 3), (7, 8), (8, 1)]
    assert [link for _, link, _ in found] == [one, other, one, one, other, one]


def test_they_are_made_at_their_times_since_the_run_begins():
    wire = Wire(steps((0, 1), (0.2, 2), (0.4, 3), (60, 4)))
    with Changes([wire]) as changes, say("echo begun; sleep 60", after=0.2) as node:
        changes.follow(Clock(node.stdout))
        began = time.monotonic() + 0.2
        time.sleep(1)
        node.kill()
    assert [bps for _, bps in wire.set_to] == [2, 3]
    assert 0 < changes.most_seconds_late < 0.15
    for (at, _), expected in zip(wire.set_to, (0.2, 0.4), strict=True):
        assert at - began == pytest.approx(expected, abs=0.15)


def test_there_are_none_if_it_never_begins():
    wire = Wire(steps((0, 1), (1e-9, 2)))
    with Changes([wire]) as changes, say("true", after=0) as node:
        changes.follow(Clock(node.stdout))
    assert not wire.set_to


def test_what_goes_wrong_is_raised_at_the_end():
    def meanwhile():
        with Changes([Wire(steps((0, 1), (0.01, 13)))]) as changes, say("echo begun", after=0) as node:
            changes.follow(Clock(node.stdout))
            time.sleep(0.3)

    with pytest.raises(RuntimeError, match="refuses"):
        meanwhile()
