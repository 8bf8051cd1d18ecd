"""CIFAR-10 and CIFAR-100 (Krizhevsky, 2009): 60,000 colour images of 32 x 32 in 10 or 100 classes."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from dlion_sim.learning.datasets.dataset import Dataset, NormalisedImages
from dlion_sim.learning.datasets.source import Source
from dlion_sim.learning.tasks import Classification

_TRAIN = {
    "data_batch_1": "c99cafc152244af753f735de768cd75f",
    "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
    "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
    "data_batch_4": "634d18415352ddfa80567beed471001a",
    "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
}
_TEST = {"test_batch": "40351d587109b95175f43aff81a1287e"}
CIFAR10 = Source(
    folder="cifar-10-batches-py",
    md5=_TRAIN | _TEST,
    url="https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
    archive_md5="c58f30108f718f92721af3b95e74349a",
)
CIFAR100 = Source(
    folder="cifar-100-python",
    md5={"train": "16019d7e3df5f24257cddd939b257f8d", "test": "f0ef6b0ae62326f3e7ffdfab6717acfc"},
    url="https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
    archive_md5="eb9058c3a382ffc7106e4002c42a8d85",
)


def cifar10() -> Dataset:
    """CIFAR-10 from its Python batches: 50,000 training and 10,000 test images [3, 32, 32]."""
    files = CIFAR10.read()
    train_images, train_labels = read_batches([files[name] for name in _TRAIN])
    test_images, test_labels = read_batches([files[name] for name in _TEST])
    return Dataset(
        name="cifar10",
        train_inputs=train_images,
        train_targets=train_labels,
        test_inputs=test_images,
        test_targets=test_labels,
        task=Classification(classes=10),
        transform=NormalisedImages(mean=(0.4914, 0.4822, 0.4465), std=(0.2470, 0.2435, 0.2616)),
    )


def cifar10_halved() -> Dataset:
    """CIFAR-10 with squares of four pixels averaged: the same images as [3, 16, 16], for quick runs."""
    whole = cifar10()
    return replace(
        whole,
        name="cifar10_halved",
        train_inputs=_halved(whole.train_inputs),
        test_inputs=_halved(whole.test_inputs),
        transform=NormalisedImages(mean=(0.4919, 0.4827, 0.4470), std=(0.2381, 0.2347, 0.2536)),
    )


def cifar10_unit() -> Dataset:
    """CIFAR-10 with pixels from 0 to 1, which are not normalised: as tflearn's loader gives them to TF.AKO."""
    return replace(cifar10(), name="cifar10_unit", transform=NormalisedImages(mean=(0.0,) * 3, std=(1.0,) * 3))


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


def _halved(images: Tensor) -> Tensor:
    """Images uint8 [N, C, H, W] as uint8 [N, C, H / 2, W / 2], rounded."""
    rows = images[:, :, ::2].short() + images[:, :, 1::2]
    return ((rows[..., ::2] + rows[..., 1::2] + 2) // 4).to(torch.uint8)


def read_batches(files: list[bytes], labels: bytes = b"labels") -> tuple[Tensor, Tensor]:
    """Images, and what they have as `labels`.

    The files are pickles, which run what they contain: never give it unverified bytes.
    """
    batches = [pickle.loads(file, encoding="bytes") for file in files]
    images = np.concatenate([batch[b"data"] for batch in batches]).reshape(-1, 3, 32, 32)
    classes = np.concatenate([batch[labels] for batch in batches])
    return torch.from_numpy(images), torch.from_numpy(classes)
