"""Small problems to learn."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from dlion_sim.learning import Dataset
from dlion_sim.learning.datasets import NormalisedImages
from dlion_sim.learning.process import one_core
from dlion_sim.learning.tasks import Classification

CPU = torch.device("cpu")


def random_dataset(shape: tuple[int, int, int] = (3, 8, 8), train: int = 200, test: int = 330) -> Dataset:
    generator = torch.Generator().manual_seed(0)

    def images(count: int) -> torch.Tensor:
        return torch.randint(0, 256, (count, *shape), generator=generator, dtype=torch.uint8)

    def labels(count: int) -> torch.Tensor:
        return torch.randint(0, 10, (count,), generator=generator)

    return Dataset(
        name="random",
        train_inputs=images(train),
        train_targets=labels(train),
        test_inputs=images(test),
        test_targets=labels(test),
        task=Classification(10),
        transform=NormalisedImages(mean=(0.5,) * shape[0], std=(0.25,) * shape[0]),
    )


@pytest.fixture
def single_threaded() -> Iterator[None]:
    """PyTorch's operators use one thread: on a busy machine, several wait for each other."""
    with one_core():
        yield


@pytest.fixture(scope="session")
def dataset() -> Dataset:
    return random_dataset()
