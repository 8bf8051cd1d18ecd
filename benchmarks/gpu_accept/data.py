"""Synthetic images of CIFAR-10's shape or smaller: noise over a pattern for each class."""

from __future__ import annotations

from functools import cache, partial

import torch

from dlion_sim.learning import Dataset
from dlion_sim.learning.datasets import NormalisedImages
from dlion_sim.learning.tasks import Classification


def images() -> Dataset:
    """As many training images as CIFAR-10, of its size."""
    return _images(50_000, 2_000, 32)


def few_images() -> Dataset:
    """Few and small images."""
    return _images(240, 50, 8)


@cache
def _images(training: int, test: int, width: int) -> Dataset:
    generator = torch.Generator().manual_seed(0)
    numbers = partial(torch.randint, 128, dtype=torch.uint8, generator=generator)
    patterns = numbers((10, 3, width, width))
    labels = torch.arange(training + test) % 10
    pixels = numbers((training + test, 3, width, width)).add_(patterns[labels])
    normalised = NormalisedImages(mean=(0.5,) * 3, std=(0.2,) * 3)
    parts = pixels[:training], labels[:training], pixels[training:], labels[training:]
    return Dataset(*parts, Classification(10), normalised)
