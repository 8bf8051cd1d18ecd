"""Paths that lead nowhere for a while."""

from dlion_sim.assembly.outages import Outage
from dlion_sim.emulation.path import with_routes
from dlion_sim.scenario import Schedule

SHORT, LONG = Outage(5, 6), Outage(10, 30)


def test_a_device_goes_on_sending_in_outages_in_which_routes_lead_nowhere():
    whole = Schedule(((0.0, 20e6), (15.0, 10e6)))
    interrupted = Schedule(((0.0, 20e6), (5.0, 0.0), (6.0, 20e6), (10.0, 0.0), (15.0, 0.0), (30.0, 10e6)))
    sent = with_routes([LONG], interrupted, whole)
    assert sent.steps == ((0.0, 20e6), (5.0, 0.0), (6.0, 20e6), (10.0, 20e6), (15.0, 10e6), (30.0, 10e6))


def test_without_such_outages_it_is_interrupted_as_it_was():
    interrupted = Schedule(((0.0, 20e6), (5.0, 0.0), (6.0, 20e6)))
    assert with_routes([], interrupted, Schedule(((0.0, 20e6),))) == interrupted
