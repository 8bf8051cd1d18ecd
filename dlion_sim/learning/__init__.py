"""Learning: models, datasets and their partitions, flat parameters, gradients and scores. No time, no workers."""

from dlion_sim.learning.batches import BatchSampler, Newest, Reservoir
from dlion_sim.learning.datasets import Dataset, load, own_dataset
from dlion_sim.learning.evaluation import Evaluator
from dlion_sim.learning.flat import Layout, flatten
from dlion_sim.learning.fused import FusedGradientExecutor, gradient_executor
from dlion_sim.learning.gradients import GradientExecutor, Ticket
from dlion_sim.learning.layers import Kernels, usable_kernels
from dlion_sim.learning.models import build, model_for, own_model, training_flops
from dlion_sim.learning.moment import Moment
from dlion_sim.learning.partition import class_histogram, hold_out, partition
from dlion_sim.learning.replica import Replica
from dlion_sim.learning.tasks import Score, Task

__all__ = [
    "BatchSampler",
    "Dataset",
    "Evaluator",
    "FusedGradientExecutor",
    "GradientExecutor",
    "Kernels",
    "Layout",
    "Moment",
    "Newest",
    "Replica",
    "Reservoir",
    "Score",
    "Task",
    "Ticket",
    "build",
    "class_histogram",
    "flatten",
    "gradient_executor",
    "hold_out",
    "load",
    "model_for",
    "own_dataset",
    "own_model",
    "partition",
    "training_flops",
    "usable_kernels",
]
