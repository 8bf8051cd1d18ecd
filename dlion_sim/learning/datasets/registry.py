"""Datasets by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dlion_sim.errors import InputError
from dlion_sim.learning.datasets.cifar10 import cifar10
from dlion_sim.learning.datasets.dataset import Dataset
from dlion_sim.learning.datasets.digits import digits
from dlion_sim.learning.datasets.mnist import fashion_mnist, mnist

DATASETS: Mapping[str, Callable[[], Dataset]] = {
    "cifar10": cifar10,
    "digits": digits,
    "fashion_mnist": fashion_mnist,
    "mnist": mnist,
}


@dataclass(frozen=True)
class Published:
    """What is known of a dataset without having it."""

    input_shape: tuple[int, int, int]
    """Channels, height and width of an image."""
    classes: int
    training: int
    test: int
    """How many images there are."""
    origin: str


PUBLISHED: Mapping[str, Published] = {
    "cifar10": Published((3, 32, 32), 10, 50_000, 10_000, "Krizhevsky, 2009; a download of 170 MB"),
    "digits": Published((1, 8, 8), 10, 1_437, 360, "UCI's optical digits; embedded, with scikit-learn"),
    "fashion_mnist": Published((1, 28, 28), 10, 60_000, 10_000, "Xiao et al., 2017; a download of 31 MB"),
    "mnist": Published((1, 28, 28), 10, 60_000, 10_000, "LeCun et al., 1998; a download of 12 MB"),
}


def load(name: str) -> Dataset:
    """The dataset `name`, in main memory.

    Raises InputError for an unknown name, and where the published files cannot be had or are damaged.
    """
    if name not in DATASETS:
        raise InputError(f"no dataset is named {name!r}", path="dataset", allowed=", ".join(DATASETS))
    return DATASETS[name]()
