"""Tasks: losses and metrics of models."""

from dlion_sim.learning.tasks.classification import Classification
from dlion_sim.learning.tasks.next_token import NextToken
from dlion_sim.learning.tasks.regression import Regression
from dlion_sim.learning.tasks.task import ClassScore, Score, Task

__all__ = ["ClassScore", "Classification", "NextToken", "Regression", "Score", "Task"]
