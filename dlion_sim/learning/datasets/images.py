"""From bytes to what networks take."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor


@dataclass(frozen=True)
class NormalisedImages:
    """Images [B, C, H, W] from 0 to `scale`, mostly uint8, as float32 with mean 0 and deviation 1.

    `mean` and `std` of each channel are those of the training images after division by `scale`.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    scale: int = 255

    def __call__(self, images: Tensor) -> Tensor:
        """New images of the same shape; `images` are left as they are."""
        mean, std = _statistics(self, images.device)
        # Channels last is the order of memory in which convolutions run fastest.
        return images.to(torch.float32, copy=True, memory_format=torch.channels_last).sub_(mean).div_(std)


# Kept, since nothing may come from main memory while a CUDA graph is recorded.
@cache
def _statistics(images: NormalisedImages, device: torch.device) -> Tensor:
    """Mean and deviation [2, C, 1, 1] of the images before division by `scale`."""
    statistics = torch.tensor([images.mean, images.std], device=device) * images.scale
    return statistics[:, :, None, None]
