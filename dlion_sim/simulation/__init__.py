"""The virtual-time driver, compute devices, network and dynamics."""

from dlion_sim.simulation.engine import Progress
from dlion_sim.simulation.simulate import simulate

__all__ = ["Progress", "simulate"]
