"""Datasets by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

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


def load(name: str) -> Dataset:
    """The dataset `name`, in main memory.

    Raises InputError for an unknown name, and where the published files cannot be had or are damaged.
    """
    if name not in DATASETS:
        raise InputError(f"no dataset is named {name!r}", path="workload.dataset", allowed=", ".join(DATASETS))
    return DATASETS[name]()
