"""Calibration of a scenario's emulated network, by nodes on its hosts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from dlion_sim.calibration import Outcome, measure_by_processes
from dlion_sim.emulation.emulate import on_hosts
from dlion_sim.errors import InputError
from dlion_sim.scenario import Scenario


def measure_emulated(
    scenario: Scenario,
    output: Path,
    *,
    seconds: float,
    interrupted: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Measure the paths between the clouds, each from its first worker's host, at the start of the scenario.

    Raises InputError if it cannot be emulated; `check_requirements` finds out whether this machine can.
    """
    from dlion_sim.emulation.network import network_of  # It imports Mininet, which is an extra.

    first: dict[str, int] = {}
    for worker in scenario.cluster.workers:
        first.setdefault(worker.cloud, worker.index)
    if len(first) < 2:
        raise InputError("there is a single one, and so no path", path="cluster.clouds", allowed="two or more")
    with network_of(scenario) as network:
        spots = on_hosts(network, list(first.values()))
        return measure_by_processes(spots, list(first), output, seconds=seconds, interrupted=interrupted)
