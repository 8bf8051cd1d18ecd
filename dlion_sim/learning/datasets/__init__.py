"""The datasets that workers can learn from, one a file."""

from dlion_sim.learning.datasets.dataset import Dataset, InputKind, NormalisedImages
from dlion_sim.learning.datasets.own import own_dataset
from dlion_sim.learning.datasets.registry import PUBLISHED, Published, fetch, load

__all__ = ["PUBLISHED", "Dataset", "InputKind", "NormalisedImages", "Published", "fetch", "load", "own_dataset"]
