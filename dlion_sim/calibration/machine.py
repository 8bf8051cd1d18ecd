"""How long this machine takes for a model's gradients, as a scenario says it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from statistics import median
from typing import Any

import numpy as np

from dlion_sim.assembly import Setting
from dlion_sim.calibration.fit import Fit, fit
from dlion_sim.errors import InputError
from dlion_sim.learning import gradient_executor
from dlion_sim.learning.process import Device, device_named, frozen_objects, one_core
from dlion_sim.scenario import CORES, DURATION, Scenario, to_data

_WARM_UP = 2
"""Gradients of each size that do not count: the first ones compile, and fill caches."""
_ROUNDS, _SECONDS = 9, 3.0
"""There are so many rounds or more, until so much time is over;"""
_FEWEST_ROUNDS, _MOST_SECONDS = 3, 60.0
"""or so many, where these take longer."""
_OF_WORKLOAD = ("dataset", "model", "lora")
"""What the times are of."""


@dataclass(frozen=True)
class Calibration:
    """What was measured, and what a scenario says for it."""

    seconds: dict[int, float]
    """The median of a gradient, by batch size."""
    fit: Fit
    cores: float
    """How many cores the machine is worth: so many times as fast as one, by `workload.compute_time.beta`."""
    block: dict[str, Any]
    """The keys of a scenario: `workload`, with its `compute_time`, and a `cluster` of this machine."""


def calibrate(scenario: Scenario, device: Device = "auto") -> Calibration:
    """Time gradients of the scenario's model here, as a live node computes them: on a CPU by one thread.

    The batch sizes are around that of the workload. Raises InputError for a scenario that cannot be run.
    """
    if scenario.workload.cost_as is not None:
        problem = "has another model charged than the one that would be timed"
        raise InputError(problem, path="workload.cost_as", allowed="a workload without it")
    setting = Setting.of(scenario, device_named(device))
    given = scenario.workload.batch_size
    sizes = sorted({max(1, given // 4), max(1, given // 2), given, 2 * given, 4 * given})
    seconds = {size: median(times) for size, times in time_gradients(setting, sizes).items()}
    return calibration(setting, seconds)


def calibration(setting: Setting, seconds: dict[int, float]) -> Calibration:
    """What the seconds of a gradient by batch size make of the setting's machine."""
    line = fit(seconds)
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


def time_gradients(
    setting: Setting, sizes: Sequence[int], clock: Callable[[], float] = time.perf_counter
) -> dict[int, list[float]]:
    """Seconds of gradients, by batch size: all sizes in turn, again and again, so that a busy moment harms none alone.

    Samples of a batch may repeat; none is trained on.
    """
    replica, shard = setting.worker(0).replica, setting.shards[0]
    batches = {size: np.resize(shard, size) for size in sizes}
    of = setting.model, setting.dataset, setting.device
    times: dict[int, list[float]] = {size: [] for size in sizes}
    with one_core(), closing(gradient_executor(*of, replicas=1, threads=1, kernels=setting.kernels)) as executor:
        for batch in batches.values():
            for _ in range(_WARM_UP):
                executor.result(executor.submit(replica, batch))
        with frozen_objects():
            began = clock()
            for rounds in count():
                took = clock() - began
                if (rounds >= _ROUNDS and took > _SECONDS) or (rounds >= _FEWEST_ROUNDS and took > _MOST_SECONDS):
                    break
                for size, batch in batches.items():
                    now = clock()
                    executor.result(executor.submit(replica, batch))
                    times[size].append(clock() - now)
    return times
