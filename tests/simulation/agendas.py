"""What tests do with agendas."""

from __future__ import annotations

import math

from dlion_sim.simulation.agenda import Agenda


def finish(agenda: Agenda) -> None:
    """Make all calls."""
    while agenda.next_time < math.inf:
        agenda.step()
