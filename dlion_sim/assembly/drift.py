"""What comes to the workers at a time: which classes how often, and what inputs are like."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dlion_sim.learning import Moment
from dlion_sim.learning.moment import changed
from dlion_sim.scenario import Brightness, Rotation, Stream

Floats = npt.NDArray[np.float64]

_IMAGES = 5000
"""That are changed together: they are floats meanwhile."""


class Drift:
    """How a `stream` changes, of workers in these `clouds`, one each, whose shards are `counts` [workers, classes].

    `images` [N, C, H, W] have the range that brighter ones stay in; others than images only where none change.
    """

    def __init__(self, stream: Stream, clouds: Sequence[str], counts: Sequence[Sequence[int]], images: Tensor) -> None:
        self._of_classes = [each for _, each in stream.of_classes]
        self._of_inputs = [each for _, each in stream.of_inputs]
        self._clouds = clouds
        self._counts = np.array(counts, np.float64)
        self._range = float(images.min()), float(images.max())

    def shares(self, worker: int, times: Floats) -> Floats:
        """Of what comes to a worker at some times (s) [N], that of each class [N, classes]; 0 where nothing may."""
        weights = np.tile(self._counts[worker], (len(times), 1))
        for change in self._of_classes:
            if change.concerns(self._clouds[worker]):
                weights[:, sorted(set(change.changing))] *= change.weight_at(times)[:, None]
        sums = weights.sum(axis=1, keepdims=True)
        shares: Floats = weights / np.where(sums > 0, sums, 1.0)
        return shares

    def moment(self, now: float) -> Moment:
        """What the test is like at a time (s): classes come as often as to the mean worker, and inputs as then."""
        times = np.array([now])
        shares = np.mean([self.shares(worker, times)[0] for worker in range(len(self._counts))], axis=0)
        return Moment(shares, partial(self._at, now))

    def changed(self, images: Tensor, times: Floats) -> Tensor:
        """Inputs as they come at some times (s) [N]: the same ones where inputs do not change."""
        if not self._of_inputs:
            return images
        brightness, degrees = (
            sum(
                (each.by * each.part_at(times) for each in self._of_inputs if isinstance(each, kind)),
                np.zeros(len(times)),
            )
            for kind in (Brightness, Rotation)
        )
        parts = [slice(begin, begin + _IMAGES) for begin in range(0, len(times), _IMAGES)]
        return torch.cat([changed(images[part], brightness[part], degrees[part], *self._range) for part in parts])

    def _at(self, now: float, images: Tensor) -> Tensor:
        return self.changed(images, np.full(len(images), now))
