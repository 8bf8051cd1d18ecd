"""The datasets that workers can learn from, one a file."""

from dlion_sim.learning.datasets.dataset import Dataset
from dlion_sim.learning.datasets.registry import PUBLISHED, Published, load

__all__ = ["PUBLISHED", "Dataset", "Published", "load"]
