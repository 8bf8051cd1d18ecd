"""Learning: models, datasets and their partitions, flat parameters, gradients and scores. No time, no workers."""

from dlion_sim.learning.batches import BatchSampler
from dlion_sim.learning.datasets import Dataset, load
from dlion_sim.learning.evaluation import Evaluator, Score
from dlion_sim.learning.flat import Layout, flatten
from dlion_sim.learning.fused import FusedGradientExecutor, gradient_executor
from dlion_sim.learning.gradients import GradientExecutor, Ticket
from dlion_sim.learning.layers import Kernels, usable_kernels
from dlion_sim.learning.models import build, training_flops
from dlion_sim.learning.partition import class_histogram, hold_out, partition
from dlion_sim.learning.replica import Replica

__all__ = [
    "BatchSampler",
    "Dataset",
    "Evaluator",
    "FusedGradientExecutor",
    "GradientExecutor",
    "Kernels",
    "Layout",
    "Replica",
    "Score",
    "Ticket",
    "build",
    "class_histogram",
    "flatten",
    "gradient_executor",
    "hold_out",
    "load",
    "partition",
    "training_flops",
    "usable_kernels",
]
