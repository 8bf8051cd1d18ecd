"""A machine that takes as long on any day, however busy it is."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from dlion_sim.calibration import machine


def steady_iterations(setting: object, sizes: Iterable[int]) -> dict[int, list[float]]:
    """Takes the place of `time_iterations`: 10 ms, and 1 ms a sample."""
    return {size: [0.01 + 1e-3 * size] for size in sizes}


def steady(patch: pytest.MonkeyPatch) -> None:
    """All that is measured of a machine is that; a message takes 2 ms."""
    patch.setattr(machine, "time_iterations", steady_iterations)
    patch.setattr(machine, "time_messages", lambda *_: 2e-3)
