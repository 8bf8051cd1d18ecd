"""The arrays that compiled code works on: they grow here, outside of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dlion_sim.simulation.packets.state import ARRAYS, LONGEST_PATH, NONE, locate

_LEAST = 64


class Memory:
    """Records by the array's name, of which so many are in use; `at` is what compiled functions are handed."""

    def __init__(self) -> None:
        self._arrays = {name: _array(name, 0) for name in ARRAYS}
        self._used = dict.fromkeys(ARRAYS, 0)
        self.at = self._locate()

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """All records that there is room for."""
        return self._arrays[name]

    def used(self, name: str) -> int:
        """How many of them are in use."""
        return self._used[name]

    def take(self, name: str, count: int = 1) -> int:
        """Take so many records more into use; the number of the first."""
        first = self._used[name]
        self.reserve(name, first + count)
        self._used[name] += count
        return first

    def reserve(self, name: str, count: int) -> None:
        """Have room for so many."""
        array = self._arrays[name]
        if count > len(array):
            longer = _array(name, max(count, 2 * len(array), _LEAST))
            longer[: len(array)] = array
            self._arrays[name] = longer
            self.at = self._locate()

    def _locate(self) -> npt.NDArray[np.int64]:
        located: npt.NDArray[np.int64] = locate(*self._arrays.values())
        return located


def _array(name: str, count: int) -> npt.NDArray[Any]:
    if name == "paths":
        return np.full((count, LONGEST_PATH + 1), NONE, np.int32)
    return np.zeros(count, ARRAYS[name])
