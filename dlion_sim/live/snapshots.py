"""A worker's parameters over time, for evaluations after the run. On disk, as those of a long run fill the memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class Snapshot:
    """A worker's parameters [P] at a time, after so many iterations."""

    time: float
    iteration: int
    parameters: Tensor


class Snapshots:
    """The snapshots of a run in order of time, in a file without a name in `folder`, which exists at the first one.

    Raises OSError if it cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: IO[bytes] | None = None
        self._moments: list[tuple[float, int]] = []

    def __len__(self) -> int:
        return len(self._moments)

    def __iter__(self) -> Iterator[Snapshot]:
        if self._file is None:
            return
        content = np.memmap(self._file, np.float32, "r").reshape(len(self), -1)
        for (time, iteration), parameters in zip(self._moments, content, strict=True):
            yield Snapshot(time, iteration, torch.from_numpy(parameters.copy()))

    def add(self, time: float, iteration: int, parameters: Tensor) -> None:
        """Keep these parameters [P] of `time` seconds; of two snapshots at one time the last one counts."""
        if self._moments and self._moments[-1][0] >= time:
            self._moments.pop()
        if self._file is None:
            self._file = TemporaryFile(dir=self._folder)  # noqa: SIM115  (until `close`)
        row = parameters.cpu().numpy()
        self._file.seek(len(self) * row.nbytes)
        self._file.write(row.data)
        self._file.flush()
        self._moments.append((time, iteration))

    def close(self) -> None:
        """Forget them."""
        if self._file is not None:
            self._file.close()
