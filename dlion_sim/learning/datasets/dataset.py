"""Labelled images in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Dataset:
    """Images with labels, split into a training set and a test set.

    Images are uint8 [N, C, H, W] from 0 to `scale` and become floats one batch at a time; labels are int64 [N]. `mean`
    and `std` of each channel are those of the training images after division by `scale`.
    """

    name: str
    train_images: Tensor
    train_labels: Tensor
    test_images: Tensor
    test_labels: Tensor
    classes: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    scale: int = 255

    @property
    def input_shape(self) -> tuple[int, int, int]:
        """Channels, height and width of an image."""
        _, channels, height, width = self.train_images.shape
        return channels, height, width

    def to(self, device: torch.device) -> Dataset:
        """The same data on `device`, shared with this one where it already lies there."""
        return replace(
            self,
            train_images=self.train_images.to(device),
            train_labels=self.train_labels.to(device),
            test_images=self.test_images.to(device),
            test_labels=self.test_labels.to(device),
        )

    def normalise(self, images: Tensor) -> Tensor:
        """The uint8 `images` [B, C, H, W] as float32, with mean 0 and deviation 1 over the training set."""
        mean, std = self._statistics
        # Channels last is the order of memory in which convolutions run fastest.
        return images.to(torch.float32, memory_format=torch.channels_last).sub_(mean).div_(std)

    @cached_property
    def _statistics(self) -> Tensor:
        """Mean and deviation [2, C, 1, 1] of the images before division by `scale`."""
        statistics = torch.tensor([self.mean, self.std], device=self.train_images.device) * self.scale
        return statistics[:, :, None, None]
