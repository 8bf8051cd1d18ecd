"""Changes of emulated links and paths."""

from itertools import islice
from types import SimpleNamespace

from dlion_sim.assembly.outages import Outage
from dlion_sim.emulation.links import in_order, with_routes
from dlion_sim.scenario import Schedule


def test_all_changes_are_made_in_the_order_of_time():
    made = []
    one, other, fixed = (
        SimpleNamespace(changes=schedule.changes, set=lambda value, name=name: made.append((name, value)))
        for name, schedule in {
            "one": Schedule(((0, 1), (2, 3)), 4),
            "other": Schedule(((0, 5), (3, 6), (7, 8)), None),
            "fixed": Schedule(((0, 9),), None),
        }.items()
    )
    times = []
    for at, change in islice(in_order([one, other, fixed]), 6):
        times.append(at)
        change()
    assert times == [2, 3, 4, 6, 7, 8]
    assert made == [("one", 3), ("other", 6), ("one", 1), ("one", 3), ("other", 8), ("one", 1)]


def test_a_device_keeps_its_capacity_in_outages_by_routes_only():
    whole = Schedule(((0.0, 20e6), (15.0, 10e6)))
    interrupted = Schedule(((0.0, 20e6), (5.0, 0.0), (6.0, 20e6), (10.0, 0.0), (15.0, 0.0), (30.0, 10e6)))
    sent = with_routes([Outage(10, 30)], interrupted, whole)
    assert sent.steps == ((0.0, 20e6), (5.0, 0.0), (6.0, 20e6), (10.0, 20e6), (15.0, 10e6), (30.0, 10e6))
    assert with_routes([], interrupted, whole) == interrupted
