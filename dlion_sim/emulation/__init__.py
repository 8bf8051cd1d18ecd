"""Real nodes on one machine, over a network that Mininet emulates. Needs root, and the extra `emulation`."""

from dlion_sim.emulation.emulate import emulate
from dlion_sim.emulation.leftovers import remove_leftovers
from dlion_sim.emulation.machine import check_machine

__all__ = ["check_machine", "emulate", "remove_leftovers"]
