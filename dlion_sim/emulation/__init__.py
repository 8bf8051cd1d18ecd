"""Real nodes on one machine, over a network that Mininet emulates. Needs root, and the extra `emulation`."""

from dlion_sim.emulation.emulate import emulate, measure_emulated
from dlion_sim.emulation.leftovers import remove_leftovers
from dlion_sim.emulation.requirements import check_requirements
