"""Time of a message on this machine: of two live nodes, by how much iterations are longer than their computations."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from dlion_sim.calibration.iterations import alone
from dlion_sim.errors import InputError
from dlion_sim.learning.process import Device
from dlion_sim.live import run_locally
from dlion_sim.results import Run
from dlion_sim.scenario import DURATION, Cluster, Scenario
from dlion_sim.scenario.workload import ComputeTime

_FACTOR, _LEAST_SECONDS = 3.0, 0.3
"""Computations are paced to this multiple of what they take, or at least so long: both nodes end theirs at once, after
a rest as in iterations over a WAN. A virtual machine's memory may be slow after it."""
_SECONDS, _FEWEST, _MOST = 5.0, 8, 60
"""Time and numbers of iterations."""


def time_messages(scenario: Scenario, seconds: float, device: Device = "auto") -> float:
    """Seconds that a node takes for a message with a gradient of the scenario's model, which takes `seconds`.

    Two nodes on this machine, over loopback, wait for each other's gradient in every iteration: selecting, encoding,
    encryption, the way through the kernel, decoding and the update. Raises InputError if they cannot run.
    """
    pace = max(_LEAST_SECONDS, _FACTOR * seconds)
    one = alone(scenario)
    paced = ComputeTime.model_validate({"alpha": DURATION.format(pace), "beta": "0 s"})
    changed = {
        "cluster": Cluster.model_validate({"clouds": [{"name": "here", "workers": [{"count": 2}]}]}),
        "iterations": int(min(_MOST, max(_FEWEST, _SECONDS / pace))),
        "workload": one.workload.model_copy(update={"compute_time": paced}),
    }
    with TemporaryDirectory(prefix="dlion-") as folder:
        run = run_locally(one.model_copy(update=changed), Path(folder) / "run", device=device)
        if run.outcome["status"] != "completed":
            raise InputError(f"two nodes that were to be timed ended {run.outcome['stopped_by']}")
        return of_iterations(run)


def of_iterations(run: Run) -> float:
    """By how much an iteration is longer than its computation (s), without the first one: the mean over the workers, as
    the one that waits in an iteration does not in the next; the median over iterations."""
    longer: list[pd.Series] = []
    for _, own in run.iterations().set_index("iteration").groupby("worker"):
        longer.append((own["virtual_time"].diff() - own["compute_seconds"]).iloc[1:])
    return max(0.0, float(pd.concat(longer, axis=1).mean(axis=1).median()))
