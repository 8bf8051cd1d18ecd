"""Datasets by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dlion_sim.errors import InputError
from dlion_sim.learning.datasets.cifar10 import cifar10
from dlion_sim.learning.datasets.dataset import Dataset, InputKind
from dlion_sim.learning.datasets.digits import digits
from dlion_sim.learning.datasets.mnist import fashion_mnist, mnist
from dlion_sim.learning.datasets.own import own_dataset
from dlion_sim.learning.tasks import Classification, Task
from dlion_sim.own_code import is_reference

DATASETS: Mapping[str, Callable[[], Dataset]] = {
    "cifar10": cifar10,
    "digits": digits,
    "fashion_mnist": fashion_mnist,
    "mnist": mnist,
}


@dataclass(frozen=True)
class Published:
    """What is known of a dataset without having it."""

    input_kind: InputKind
    input_shape: tuple[int, ...]
    """Of a sample: channels, height and width of an image."""
    task: Task
    training: int
    test: int
    """How many samples there are."""
    origin: str


_TEN = Classification(classes=10)

PUBLISHED: Mapping[str, Published] = {
    "cifar10": Published("images", (3, 32, 32), _TEN, 50_000, 10_000, "Krizhevsky, 2009; a download of 170 MB"),
    "digits": Published("images", (1, 8, 8), _TEN, 1_437, 360, "UCI's optical digits; embedded, with scikit-learn"),
    "fashion_mnist": Published("images", (1, 28, 28), _TEN, 60_000, 10_000, "Xiao et al., 2017; a download of 31 MB"),
    "mnist": Published("images", (1, 28, 28), _TEN, 60_000, 10_000, "LeCun et al., 1998; a download of 12 MB"),
}


def load(name: str) -> Dataset:
    """The dataset `name`, or the user's own as `package.module:name`, in main memory.

    Raises InputError for an unknown name, where the published files cannot be had or are damaged, and for one of the
    user's own that cannot be learned from.
    """
    if is_reference(name):
        return own_dataset(name)
    if name not in DATASETS:
        allowed = f"{', '.join(DATASETS)}, or package.module:name"
        raise InputError(f"no dataset is named {name!r}", path="workload.dataset", allowed=allowed)
    return DATASETS[name]()
