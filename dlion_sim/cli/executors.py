"""The executor of a sweep's runs, and its options."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dlion_sim.cli.options import Device
from dlion_sim.errors import InputError

if TYPE_CHECKING:
    from dlion_sim.sweep import Executor, Point


_RAY = "--executor ray"


ExecutorKind = Literal["local", "ray"]

Jobs = Annotated[int | None, typer.Option(min=1, help="Parallel runs; by default one per core.", show_default=False)]
RunBy = Annotated[ExecutorKind, typer.Option(help="Processes on this machine, or a Ray cluster.")]
Address = Annotated[
    str | None,
    typer.Option(help="With ray: host:port of a cluster; by default Ray is started here.", show_default=False),
]
GpusPerJob = Annotated[
    float | None, typer.Option(help="With ray: GPUs per run, e.g. 0.25; by default none.", show_default=False)
]


@dataclass(frozen=True)
class ExecutorOptions:
    """The options of an executor."""

    kind: ExecutorKind
    jobs: int | None
    device: Device
    address: str | None
    gpus_per_job: float | None

    def check(self) -> None:
        """Raise InputError for inconsistent options, and for Ray or a GPU that is missing."""
        if self.kind == "local":
            for option, value in (("--address", self.address), ("--gpus-per-job", self.gpus_per_job)):
                if value is not None:
                    raise InputError("needs --executor ray", file=option)
            if self.device == "cuda":
                from dlion_sim.learning.process import device_named

                device_named("cuda")
            return
        gpus = self.gpus_per_job
        if gpus is not None and (gpus <= 0 or (gpus > 1 and not gpus.is_integer())):
            problem = f"{gpus:g} is neither a share of a GPU nor a number of GPUs"
            raise InputError(problem, file="--gpus-per-job", allowed="e.g. 0.25, 1 or 2")
        if (self.device == "cuda" and not gpus) or (self.device == "cpu" and gpus):
            problem = "does not go with --gpus-per-job" if gpus else "needs --gpus-per-job"
            raise InputError(problem, file=f"--device {self.device}", allowed="on a Ray cluster, a GPU for each run")
        from dlion_sim.sweep.ray_task import prepare_ray

        try:
            prepare_ray(private=self.address is None)
        except InputError as error:
            raise InputError(error.problem, file=_RAY, allowed=f"--executor local, or {error.allowed}") from None

    @property
    def device_of_jobs(self) -> Literal["auto", "cpu", "cuda"]:
        """The device of jobs; on a cluster, the one that was requested."""
        if self.kind == "local":
            return self.device
        return "cuda" if self.gpus_per_job else "cpu"

    def check_data(self, points: Sequence[Point]) -> None:
        """Raise InputError if points run on this machine and a data set is unavailable; a cluster has its own data."""
        if self.kind == "local":
            from dlion_sim.sweep import check_data

            check_data(points)

    @contextmanager
    def open(self, runs: int, output: Path, lock: int) -> Iterator[Executor]:
        """The executor for a number of runs with folders in `output`, which `lock` holds."""
        with ExitStack() as stack:
            try:
                executor = stack.enter_context(self._executor(runs, output, lock))
            except InputError as error:  # Only of a cluster.
                raise error.within(_RAY) from None
            yield executor

    def _executor(self, runs: int, output: Path, lock: int) -> AbstractContextManager[Executor]:
        if self.kind == "ray":
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
