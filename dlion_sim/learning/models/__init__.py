"""The models that workers can train, one a file."""

from dlion_sim.learning.models.flops import training_flops
from dlion_sim.learning.models.registry import build

__all__ = ["build", "training_flops"]
