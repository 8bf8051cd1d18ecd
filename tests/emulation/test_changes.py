from dataclasses import dataclass, field
from itertools import islice

from dlion_sim.emulation.changes import in_order
from dlion_sim.scenario import Schedule


@dataclass(eq=False)
class Wire:
    """A capacity that remembers what it was set to."""

    schedule: Schedule
    set_to: list[float] = field(default_factory=list)

    def changes(self):
        return self.schedule.changes()

    def set(self, bps: float) -> None:
        self.set_to.append(bps)


def test_all_changes_are_made_in_the_order_of_time():
    one, other = Wire(Schedule(((0, 1), (2, 3)), 4)), Wire(Schedule(((0, 5), (3, 6), (7, 8)), None))
    fixed = Wire(Schedule(((0, 9),), None))
    made = []
    for at, change in islice(in_order([one, other, fixed]), 6):
        change()
        made.append((at, len(one.set_to), len(other.set_to)))
    assert made == [(2, 1, 0), (3, 1, 1), (4, 2, 1), (6, 3, 1), (7, 3, 2), (8, 4, 2)]
    assert (one.set_to, other.set_to, fixed.set_to) == ([3, 1, 3, 1], [6, 8], [])
