"""Images as compiled functions see them: channels last, in C order."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def empty_images(*shape: int) -> Tensor:
    """Images [B, C, H, W] of any values that lie in memory channels last."""
    return torch.empty(shape, memory_format=torch.channels_last)


def pixels(images: Tensor) -> Any:
    """Images [B, C, H, W] as an array [B, H, W, C] in C order: their own memory if they lie there channels last."""
    return images.detach().permute(0, 2, 3, 1).contiguous().numpy()
