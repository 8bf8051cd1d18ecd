"""The virtual-time driver, compute devices, network and dynamics."""

from dlion_sim.simulation.engine import Progress
from dlion_sim.simulation.simulate import CHECKPOINT_EVERY, resume, simulate

__all__ = ["CHECKPOINT_EVERY", "Progress", "resume", "simulate"]
