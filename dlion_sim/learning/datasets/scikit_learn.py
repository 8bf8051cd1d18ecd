"""Data sets that come with scikit-learn, whose import takes a second: it is left to their use."""

from __future__ import annotations

import numpy as np
import torch

from dlion_sim.learning.datasets.dataset import Dataset, NormalisedImages
from dlion_sim.learning.tasks import Classification, Regression


def digits() -> Dataset:
    """UCI's optical digits, 80 % for training and 20 % for the test, of every class alike and always the same ones.

    1,797 images [1, 8, 8] with 17 grey levels.
    """
    from sklearn.datasets import load_digits
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


def diabetes() -> Dataset:
    """How far the disease is a year later, 80 % for training and 20 % for the test, always the same ones.

    Inputs [10] of 442 patients (Efron et al., 2004) are age, sex, body mass index, blood pressure and six blood serum
    measurements. All numbers, the targets too, are in deviations from the mean of the training samples.
    """
    from sklearn.datasets import load_diabetes
    from sklearn.model_selection import train_test_split

    parts = train_test_split(*load_diabetes(return_X_y=True, scaled=False), test_size=0.2, random_state=0)
    train_inputs, test_inputs, train_targets, test_targets = map(torch.from_numpy, parts)
    return Dataset(
        name="diabetes",
        train_inputs=_standardised(train_inputs, train_inputs),
        train_targets=_standardised(train_targets, train_targets),
        test_inputs=_standardised(test_inputs, train_inputs),
        test_targets=_standardised(test_targets, train_targets),
        task=Regression(),
    )


def _standardised(numbers: torch.Tensor, training: torch.Tensor) -> torch.Tensor:
    return ((numbers - training.mean(dim=0)) / training.std(dim=0)).float()
