"""The models that workers can train, one a file."""

from dlion_sim.learning.models.flops import training_flops
from dlion_sim.learning.models.registry import MODELS, build, model_for, own_model

__all__ = ["MODELS", "build", "model_for", "own_model", "training_flops"]
