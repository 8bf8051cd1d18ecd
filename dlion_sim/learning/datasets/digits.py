"""The digits that come with scikit-learn: 1,797 grey images of 8 x 8 in 10 classes. Needs no download."""

from __future__ import annotations

import numpy as np
import torch

from dlion_sim.learning.datasets.dataset import Dataset
from dlion_sim.learning.datasets.images import NormalisedImages
from dlion_sim.learning.tasks import Classification


def digits() -> Dataset:
    """UCI's optical digits, 80 % for training and 20 % for the test, of every class alike and always the same ones.

    Images are [1, 8, 8] with 17 grey levels.
    """
    from sklearn.datasets import load_digits  # here, since a second of import is only for those who ask for these data
    from sklearn.model_selection import train_test_split

    images, labels = load_digits(return_X_y=True)
    images = images.astype(np.uint8).reshape(-1, 1, 8, 8)
    parts = train_test_split(images, labels, test_size=0.2, stratify=labels, random_state=0)
    train_images, test_images, train_labels, test_labels = map(torch.from_numpy, parts)
    return Dataset(
        name="digits",
        train_inputs=train_images,
        train_targets=train_labels,
        test_inputs=test_images,
        test_targets=test_labels,
        task=Classification(classes=10),
        transform=NormalisedImages(mean=(0.305,), std=(0.376,), scale=16),
    )
