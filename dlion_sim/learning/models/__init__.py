"""The models that workers can train, one a file."""

from dlion_sim.learning.models.flops import training_flops
from dlion_sim.learning.models.for_dataset import model_for, own_model
from dlion_sim.learning.models.registry import MODELS, build

__all__ = ["MODELS", "build", "model_for", "own_model", "training_flops"]
