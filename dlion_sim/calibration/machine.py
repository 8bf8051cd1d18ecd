"""This machine's compute time of a model's iterations, as a scenario's keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from scipy.optimize import nnls

from dlion_sim.assembly import Setting
from dlion_sim.assembly.setting import CPU
from dlion_sim.calibration.iterations import alone, time_iterations
from dlion_sim.calibration.messages import time_messages
from dlion_sim.errors import InputError
from dlion_sim.learning.process import Device, device_named
from dlion_sim.scenario import CORES, DURATION, Scenario, to_data

_OF_WORKLOAD = ("dataset", "model", "lora")
"""The keys that the times depend on."""


_DECISIVE = 1e3
"""Weight of the batch size that the line goes through."""


@dataclass(frozen=True)
class Fit:
    """T(b) = alpha + slope * b (s) for an iteration of b samples."""

    alpha: float
    slope: float
    r2: float
    """The explained share of the times' variance."""
    worst: float
    """The greatest relative error of a time."""

    def seconds(self, batch_size: int) -> float:
        """The fitted time of a batch size."""
        return self.alpha + self.slope * batch_size


def fit(seconds: Mapping[int, float], through: int | None = None) -> Fit:
    """Non-negative least squares of relative errors, of the seconds (> 0) by batch size, two or more.

    With small memory and caches, times are not on a straight line: it goes `through` the most important size, if both
    coefficients can be 0 or more then. Raises InputError if larger batches do not take longer.
    """
    sizes, times = np.array(list(seconds), dtype=float), np.array(list(seconds.values()))
    weights = np.where(sizes == through, _DECISIVE, 1.0)
    (alpha, slope), _ = nnls(np.stack([1 / times, sizes / times], axis=1) * weights[:, None], weights)
    if slope <= 0:
        raise InputError(
            f"batches of {sizes.max():.0f} samples take no longer than of {sizes.min():.0f}, so nothing tells what a "
            "sample takes",
            path="workload.batch_size",
            allowed="larger batches: up to four times as many are timed",
        )
    residuals = alpha + slope * sizes - times
    spread = float(np.sum((times - times.mean()) ** 2))
    r2 = 1 - float(np.sum(residuals**2)) / spread if spread else 1.0
    return Fit(float(alpha), float(slope), r2, float(np.max(np.abs(residuals) / times)))


@dataclass(frozen=True)
class Calibration:
    """Measured times, and a scenario's keys for them."""

    seconds: dict[int, float]
    """The median of an iteration, by batch size."""
    fit: Fit
    per_message: float
    """Of a message with a gradient (s)."""
    cores: float
    """Equivalent number of cores, by `workload.compute_time.beta`."""
    block: dict[str, Any]
    """The keys of a scenario: `workload`, with its `compute_time`, and a `cluster` of this machine."""


def calibrate(scenario: Scenario, device: Device = "auto") -> Calibration:
    """Time iterations of the scenario's model here, as in a live node: gradients on a CPU by one thread; and messages.

    The batch sizes are around that of the workload, which the line goes through. Raises InputError for a scenario that
    cannot be run.
    """
    if scenario.workload.cost_as is not None:
        problem = "has another model charged than the one that would be timed"
        raise InputError(problem, path="workload.cost_as", allowed="a workload without it")
    setting = Setting.of(alone(scenario), device_named(device), home=CPU)
    given = scenario.workload.batch_size
    sizes = sorted({max(1, given // 4), max(1, given // 2), given, 2 * given, 4 * given})
    seconds = {size: median(times) for size, times in time_iterations(setting, sizes).items()}
    return calibration(setting, seconds, time_messages(scenario, seconds[given], device))


def calibration(setting: Setting, seconds: dict[int, float], per_message: float) -> Calibration:
    """The calibration from the seconds of an iteration by batch size, and of a message."""
    line = fit(seconds, through=setting.scenario.workload.batch_size)
    beta = setting.core_seconds_per_sample
    cores = float(f"{beta / line.slope:.4g}")
    alpha, message = (DURATION.format(float(f"{each:.4g}")) for each in (line.alpha, per_message))
    workload = to_data(setting.scenario)["workload"]
    block = {
        "workload": {
            **{key: workload[key] for key in _OF_WORKLOAD if key in workload},
            "compute_time": {"alpha": alpha, "beta": DURATION.format(beta), "per_message": message},
        },
        "cluster": {"clouds": [{"name": "here", "workers": [{"compute": CORES.format(cores)}]}]},
    }
    return Calibration(seconds, line, per_message, cores, block)
