"""This machine's compute time of a model's iterations, as a scenario's keys."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Any

from dlion_sim.assembly import Setting
from dlion_sim.assembly.setting import CPU
from dlion_sim.calibration.fit import Fit, fit
from dlion_sim.calibration.iterations import alone, time_iterations
from dlion_sim.errors import InputError
from dlion_sim.learning.process import Device, device_named
from dlion_sim.scenario import CORES, DURATION, Scenario, to_data

_OF_WORKLOAD = ("dataset", "model", "lora")
"""The keys that the times depend on."""


@dataclass(frozen=True)
class Calibration:
    """Measured times, and a scenario's keys for them."""

    seconds: dict[int, float]
    """The median of an iteration, by batch size."""
    fit: Fit
    cores: float
    """Equivalent number of cores, by `workload.compute_time.beta`."""
    block: dict[str, Any]
    """The keys of a scenario: `workload`, with its `compute_time`, and a `cluster` of this machine."""


def calibrate(scenario: Scenario, device: Device = "auto") -> Calibration:
    """Time iterations of the scenario's model here, as in a live node: gradients on a CPU by one thread.

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
    return calibration(setting, seconds)


def calibration(setting: Setting, seconds: dict[int, float]) -> Calibration:
    """The calibration from the seconds of an iteration by batch size."""
    line = fit(seconds, through=setting.scenario.workload.batch_size)
    beta = setting.core_seconds_per_sample
    cores = float(f"{beta / line.slope:.4g}")
    alpha = DURATION.format(float(f"{line.alpha:.4g}"))
    workload = to_data(setting.scenario)["workload"]
    block = {
        "workload": {
            **{key: workload[key] for key in _OF_WORKLOAD if key in workload},
            "compute_time": {"alpha": alpha, "beta": DURATION.format(beta)},
        },
        "cluster": {"clouds": [{"name": "here", "workers": [{"compute": CORES.format(cores)}]}]},
    }
    return Calibration(seconds, line, cores, block)
