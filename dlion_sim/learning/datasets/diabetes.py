"""The diabetes data that come with scikit-learn (Efron et al., 2004): ten numbers of each of 442 patients."""

from __future__ import annotations

import torch

from dlion_sim.learning.datasets.dataset import Dataset
from dlion_sim.learning.tasks import Regression


def diabetes() -> Dataset:
    """How far the disease is a year later, 80 % for training and 20 % for the test, always the same ones.

    Inputs [10] are age, sex, body mass index, blood pressure and six blood serum measurements. All numbers, the targets
    too, are in deviations from the mean of the training samples.
    """
    from sklearn.datasets import (
        load_diabetes,  # here, since a second of import is only for those who ask for these data
    )
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
