"""Datasets by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dlion_sim.errors import InputError
from dlion_sim.learning.datasets.cifar import CIFAR10, CIFAR100, cifar10, cifar10_halved, cifar10_unit, cifar100
from dlion_sim.learning.datasets.dataset import Dataset, InputKind
from dlion_sim.learning.datasets.mnist import FASHION_MNIST, MNIST, fashion_mnist, mnist
from dlion_sim.learning.datasets.scikit_learn import diabetes, digits
from dlion_sim.learning.datasets.shakespeare import shakespeare
from dlion_sim.learning.datasets.source import Source
from dlion_sim.learning.tasks import Classification, NextToken, Regression, Task

DATASETS: Mapping[str, Callable[..., Dataset]] = {
    "cifar10": cifar10,
    "cifar10_halved": cifar10_halved,
    "cifar10_unit": cifar10_unit,
    "cifar100": cifar100,
    "diabetes": diabetes,
    "digits": digits,
    "fashion_mnist": fashion_mnist,
    "mnist": mnist,
    "shakespeare": shakespeare,
}
"""Some have keyword parameters, which a scenario may set."""


@dataclass(frozen=True)
class Published:
    """Facts of a dataset, without its files."""

    input_kind: InputKind
    input_shape: tuple[int, ...]
    """Of a sample: channels, height and width of an image."""
    task: Task
    training: int
    test: int
    """Number of samples."""
    origin: str
    source: Source | None = None
    """Of its files, unless it is embedded."""


_TEN = Classification(10)

PUBLISHED: Mapping[str, Published] = {
    "cifar10": Published(
        "images", (3, 32, 32), _TEN, 50_000, 10_000, "Krizhevsky, 2009; a download of 170 MB", CIFAR10
    ),
    "cifar10_halved": Published(
        "images", (3, 16, 16), _TEN, 50_000, 10_000, "CIFAR-10 with four pixels averaged; the same download", CIFAR10
    ),
    "cifar10_unit": Published(
        "images", (3, 32, 32), _TEN, 50_000, 10_000, "CIFAR-10 with pixels from 0 to 1; the same download", CIFAR10
    ),
    "cifar100": Published(
        "images", (3, 32, 32), Classification(100), 50_000, 10_000, "Krizhevsky, 2009; a download of 169 MB", CIFAR100
    ),
    "diabetes": Published("numbers", (10,), Regression(), 353, 89, "Efron et al., 2004; embedded, with scikit-learn"),
    "digits": Published("images", (1, 8, 8), _TEN, 1_437, 360, "UCI's optical digits; embedded, with scikit-learn"),
    "fashion_mnist": Published(
        "images", (1, 28, 28), _TEN, 60_000, 10_000, "Xiao et al., 2017; a download of 31 MB", FASHION_MNIST
    ),
    "mnist": Published("images", (1, 28, 28), _TEN, 60_000, 10_000, "LeCun et al., 1998; a download of 12 MB", MNIST),
    "shakespeare": Published("tokens", (64,), NextToken(84), 71_099, 7_881, "the plays and poems; embedded"),
}


def load(name: str, **parameters: Any) -> Dataset:
    """The dataset `name`, in main memory.

    `parameters` are the dataset's own. Raises InputError for an unknown name, and where the published files cannot be
    had or are damaged.
    """
    if name not in DATASETS:
        allowed = f"{', '.join(DATASETS)}, or package.module:name"
        raise InputError(f"no dataset is named {name!r}", path="dataset", allowed=allowed)
    return DATASETS[name](**parameters)


def fetch(name: str) -> None:
    """Download the missing files of the dataset `name`, and check all of them.

    Does nothing for one that is embedded, or that is not published. Raises InputError as `load` does.
    """
    if name in PUBLISHED and (source := PUBLISHED[name].source):
        source.read()
