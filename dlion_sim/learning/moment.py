"""The distribution of samples at one moment of a stream, for evaluations; and changes of images."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

from dlion_sim.learning.tasks import ClassScore, Score

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Moment:
    """The samples at a time: `shares` of the classes [classes], which sum to 1, and the `change` of inputs."""

    shares: Floats
    change: Callable[[Tensor], Tensor]

    def score(self, sums: Sequence[float]) -> Score:
        """From sums by class, see `Classification.measure_by_class`: each class counts by its share.

        Classes without a sample do not count, and the others' shares are larger for it.
        """
        losses, right, samples = np.array(sums).reshape(-1, 3).T
        there = np.flatnonzero(samples)
        weights = self.shares[there] / (self.shares[there].sum() or math.nan)
        accuracies = right[there] / samples[there]
        by_class = np.stack([there, self.shares[there], samples[there], accuracies], axis=1).tolist()
        return Score(
            float(weights @ (losses[there] / samples[there])),
            float(weights @ accuracies),
            tuple(ClassScore(int(number), share, int(count), accuracy) for number, share, count, accuracy in by_class),
        )


def changed(images: Tensor, brightness: Floats, degrees: Floats, lowest: float, highest: float) -> Tensor:
    """Images [N, C, H, W] turned counter-clockwise by degrees [N], then brighter by parts [N] of their entries' range.

    Entries stay within `lowest` and `highest`; what turns into the image is `lowest`. New images of the same type.
    """
    changed = images.to(torch.float32) - lowest
    if degrees.any():
        changed = _turned(changed, torch.from_numpy(np.radians(degrees)).to(changed))
    added = torch.from_numpy(brightness * (highest - lowest)).to(changed)
    changed = (changed + added[:, None, None, None]).clamp_(0, highest - lowest) + lowest
    return (changed if images.is_floating_point() else changed.round_()).to(images.dtype)


def _turned(images: Tensor, angles: Tensor) -> Tensor:
    """Images turned by angles [N] in radians, between pixels interpolated; 0 where nothing was."""
    sine, cosine, zero = torch.sin(angles), torch.cos(angles), torch.zeros_like(angles)
    # Coordinates go from -1 to 1 along either side, whatever its length.
    ratio = images.shape[2] / images.shape[3]
    rows = torch.stack([cosine, -sine * ratio, zero, sine / ratio, cosine, zero], dim=1)
    grid = affine_grid(rows.view(-1, 2, 3), list(images.shape), align_corners=False)
    return grid_sample(images, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
