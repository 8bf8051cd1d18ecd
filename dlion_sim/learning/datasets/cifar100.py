"""CIFAR-100 (Krizhevsky, 2009): 60,000 colour images of 32 x 32 in 100 classes."""

from __future__ import annotations

from dlion_sim.learning.datasets.cifar10 import read_batches
from dlion_sim.learning.datasets.dataset import Dataset
from dlion_sim.learning.datasets.images import NormalisedImages
from dlion_sim.learning.datasets.source import Source
from dlion_sim.learning.tasks import Classification

CIFAR100 = Source(
    folder="cifar-100-python",
    md5={"train": "16019d7e3df5f24257cddd939b257f8d", "test": "f0ef6b0ae62326f3e7ffdfab6717acfc"},
    url="https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
    archive_md5="eb9058c3a382ffc7106e4002c42a8d85",
)


def cifar100() -> Dataset:
    """CIFAR-100 from its Python batches, by fine labels: 50,000 training and 10,000 test images [3, 32, 32]."""
    files = CIFAR100.read()
    train_images, train_labels = read_batches([files["train"]], labels=b"fine_labels")
    test_images, test_labels = read_batches([files["test"]], labels=b"fine_labels")
    return Dataset(
        name="cifar100",
        train_inputs=train_images,
        train_targets=train_labels,
        test_inputs=test_images,
        test_targets=test_labels,
        task=Classification(classes=100),
        transform=NormalisedImages(mean=(0.5071, 0.4866, 0.4409), std=(0.2673, 0.2564, 0.2762)),
    )
