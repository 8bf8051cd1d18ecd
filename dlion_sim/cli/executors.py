"""Who does a sweep's runs: the options that say so, and the executor that they open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dlion_sim.cli.options import Device
from dlion_sim.errors import InputError

if TYPE_CHECKING:
    from dlion_sim.sweep import Executor, Point


_RAY = "--executor ray"


class ExecutorKind(StrEnum):
    """Who does the runs."""

    LOCAL = "local"
    RAY = "ray"


Jobs = Annotated[int | None, typer.Option(min=1, help="Runs side by side; by default one a core.", show_default=False)]
RunBy = Annotated[ExecutorKind, typer.Option(help="Processes on this machine, or a Ray cluster.")]
Address = Annotated[
    str | None, typer.Option(help="With ray: a cluster's host:port; by default one is started.", show_default=False)
]
GpusPerJob = Annotated[
    float | None, typer.Option(help="With ray: GPUs for each run, e.g. 0.25; by default none.", show_default=False)
]


@dataclass(frozen=True)
class ExecutorOptions:
    """What the command line says of it."""

    kind: ExecutorKind
    jobs: int | None
    device: Device
    address: str | None
    gpus_per_job: float | None

    def check(self) -> None:
        """Raise InputError for options that don't go together, for Ray or a GPU where there is none."""
        if self.kind is ExecutorKind.LOCAL:
            for option, value in (("--address", self.address), ("--gpus-per-job", self.gpus_per_job)):
                if value is not None:
                    raise InputError("needs --executor ray", file=option)
            if self.device is Device.CUDA:
                from dlion_sim.learning.process import device_named

                device_named("cuda")
            return
        gpus = self.gpus_per_job
        if gpus is not None and (gpus <= 0 or (gpus > 1 and not gpus.is_integer())):
            problem = f"{gpus:g} is no share of a GPU, nor a number of GPUs"
            raise InputError(problem, file="--gpus-per-job", allowed="e.g. 0.25, 1 or 2")
        if (self.device is Device.CUDA and not gpus) or (self.device is Device.CPU and gpus):
            problem = "does not go with --gpus-per-job" if gpus else "needs --gpus-per-job"
            raise InputError(
                problem, file=f"--device {self.device.value}", allowed="on a Ray cluster, a GPU for each run"
            )
        from dlion_sim.sweep.ray_task import prepare_ray

        try:
            prepare_ray(private=self.address is None)
        except InputError as error:
            raise InputError(error.problem, file=_RAY, allowed=f"--executor local, or {error.allowed}") from None

    @property
    def device_of_jobs(self) -> Literal["auto", "cpu", "cuda"]:
        """On a cluster a job computes on what it was given, and fails if it cannot."""
        if self.kind is ExecutorKind.LOCAL:
            return self.device.value
        return "cuda" if self.gpus_per_job else "cpu"

    def check_data(self, points: Sequence[Point]) -> None:
        """Raise InputError where points are run here and a data set of theirs cannot be had; a cluster has its own."""
        if self.kind is ExecutorKind.LOCAL:
            from dlion_sim.sweep import check_data

            check_data(points)

    @contextmanager
    def open(self, runs: int, output: Path, lock: int) -> Iterator[Executor]:
        """The executor for so many runs with folders in `output`, which `lock` holds."""
        with ExitStack() as stack:
            try:
                executor = stack.enter_context(self._executor(runs, output, lock))
            except InputError as error:  # Only a cluster can be refused.
                raise error.within(_RAY) from None
            yield executor

    def _executor(self, runs: int, output: Path, lock: int) -> AbstractContextManager[Executor]:
        if self.kind is ExecutorKind.RAY:
            from dlion_sim.sweep.ray_cluster import RayCluster

            return RayCluster(
                runs,
                address=self.address,
                jobs=self.jobs,
                gpus_per_job=self.gpus_per_job or 0.0,
                output=output,
            )
        from dlion_sim.sweep import LocalProcesses, cores

        processes = min(self.jobs or cores(), runs)
        return LocalProcesses(processes, max(1, cores() // processes), lock=lock, log=output / "workers.log")
