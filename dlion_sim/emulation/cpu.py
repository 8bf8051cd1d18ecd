"""Parts of this machine's CPU for the hosts of workers, whose computations are not paced.

Each worker's machine has a control group with a quota of CPU time in each period.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from dlion_sim.errors import InputError
from dlion_sim.scenario import Cluster, Schedule

_MOUNTS = Path("/proc/self/mounts")
_PREFIX = "dlion-emulation-"
_PERIOD_US = 5_000
"""Short compared with a computation: one that fits into a period's quota is not slowed down."""
_LEAST_QUOTA_US = 1_000
"""Linux's minimum."""
_LEAST_CORES = 0.01
"""In an outage, so that connections survive it for a while."""
_POLL_SECONDS = 0.02
_SECONDS_TO_END = 5.0


@dataclass(frozen=True)
class Processor:
    """The CPU of a worker's machine, without limit until it is set."""

    group: Path
    cores: Schedule
    """Of the scenario."""
    scale: float
    """Cores of this machine for each of the scenario."""

    @property
    def share(self) -> float:
        """Cores of this machine at the start of the run."""
        return self.cores.value_at(0.0) * self.scale

    @property
    def enter(self) -> list[str]:
        """The command that runs another one there."""
        return ["sh", "-c", 'echo $$ > "$0" && exec "$@"', str(self.group / "cgroup.procs")]

    def changes(self) -> Iterator[tuple[float, float]]:
        """(seconds since the start, the scenario's cores from then on), the first at 0."""
        return chain([(0.0, self.cores.value_at(0.0))], self.cores.changes())

    def set(self, cores: float) -> None:
        """Change its capacity, in the scenario's cores. Raises InputError if the kernel refuses."""
        share = max(cores * self.scale, _LEAST_CORES)
        period = max(_PERIOD_US, math.ceil(_LEAST_QUOTA_US / share))
        quota = round(share * period)
        try:
            if (both := self.group / "cpu.max").exists():
                both.write_text(f"{quota} {period}")
            else:
                (self.group / "cpu.cfs_period_us").write_text(str(period))
                (self.group / "cpu.cfs_quota_us").write_text(str(quota))
        except OSError as error:
            raise _cannot(error) from None


def processors(cluster: Cluster, emulation: str) -> Sequence[Processor]:
    """The CPU of each worker's machine, in groups that `remove_groups` removes.

    The cores of this machine are divided in proportion to the scenario's at the start, but none gets more than one,
    which is all that a node can use. Raises InputError if the kernel refuses.
    """
    cores = [worker.compute.cores for worker in cluster.workers]
    most = max(value for schedule in cores for _, value in schedule.steps)
    scale = min((os.cpu_count() or 1) / sum(schedule.value_at(0.0) for schedule in cores), 1 / most)
    root = cpu_controller()
    groups = [root / f"{_PREFIX}{emulation}-{worker}" for worker in range(len(cores))]
    try:
        if (controllers := root / "cgroup.subtree_control").exists():
            controllers.write_text("+cpu")
        for group in groups:
            group.mkdir()
    except OSError as error:
        raise _cannot(error) from None
    return [Processor(group, schedule, scale) for group, schedule in zip(groups, cores, strict=True)]


def remove_groups(emulation: str) -> None:
    """Remove the groups of an emulation, whose processes have ended."""
    if root := _mounted():
        for group in root.glob(f"{_PREFIX}{emulation}-*"):
            _remove(group)


def cpu_controller() -> Path:
    """The mount point of the kernel's CPU controller. Raises InputError if it cannot be used."""
    root = _mounted()
    if root is None:
        raise InputError("emulation without pacing needs the kernel's cgroup controller 'cpu', which is not mounted")
    if not os.access(root, os.W_OK):
        raise InputError(
            f"emulation without pacing needs {root} to be writable; in a container: docker run --privileged"
        )
    return root


def _mounted() -> Path | None:
    """The hierarchy of version 1 or 2 that has the controller."""
    mounts = [line.split() for line in _MOUNTS.read_text().splitlines()]
    for _, place, kind, options, *_ in mounts:
        if kind == "cgroup" and "cpu" in options.split(","):
            return Path(place)
    for _, place, kind, *_ in mounts:
        controllers = Path(place) / "cgroup.controllers"
        if kind == "cgroup2" and controllers.exists() and "cpu" in controllers.read_text().split():
            return Path(place)
    return None


def _remove(group: Path) -> None:
    """The kernel counts processes for a moment after they have ended."""
    deadline = time.monotonic() + _SECONDS_TO_END
    while group.exists():
        try:
            group.rmdir()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_POLL_SECONDS)


def _cannot(error: OSError) -> InputError:
    return InputError(f"this machine cannot limit the CPU of hosts: {error.strerror}: {error.filename}")
