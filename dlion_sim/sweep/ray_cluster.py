"""The executor that runs jobs as tasks of a Ray cluster. Imports Ray: call `prepare_ray` first."""

from __future__ import annotations

import signal
import socket
from pathlib import Path
from typing import Any, NamedTuple

import ray
from ray.exceptions import NodeDiedError, RayError, RayTaskError, TaskCancelledError, WorkerCrashedError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from dlion_sim.errors import InputError
from dlion_sim.sweep.job import Ended, Job, Progressed
from dlion_sim.sweep.lock import token_of
from dlion_sim.sweep.processes import cores, thread_counts
from dlion_sim.sweep.ray_task import Board, do

_ATTEMPTS = 3
"""Attempts for a job whose machine dies."""
_CONNECT_SECONDS = 5.0
_OBJECT_STORE_BYTES = 100_000_000
"""Size for a local Ray, which transfers only small objects."""


class Machine(NamedTuple):
    """Resources of a machine of the cluster."""

    cpus: int
    gpus: int


class RayCluster:
    """An `Executor` of `runs` on the cluster at `address` (host:port); leaving the block ends running ones.

    Without an address, Ray is started on this machine for the block. At most `jobs` are submitted at once, by default
    as many as fit on the cluster; each gets `gpus_per_job` GPUs and an equal share of the CPUs. All machines must see
    `output`, which the sweep holds. Entering the block raises InputError for a cluster that cannot be joined or has no
    room.
    """

    def __init__(self, runs: int, *, address: str | None, jobs: int | None, gpus_per_job: float, output: Path) -> None:
        self._runs = runs
        self._address = address
        self._jobs = jobs
        self._gpus = gpus_per_job
        self._output = output.absolute()
        self._running: dict[Any, tuple[Job, int]] = {}
        """Job and number of the attempt, by task."""
        self._asked = False

    def __enter__(self) -> RayCluster:
        _connect(self._address)
        try:
            self._prepare()
        except BaseException:
            ray.shutdown()
            raise
        return self

    def _prepare(self) -> None:
        machines = _machines()
        room = slots(machines, 1, self._gpus)
        if not room:
            wanted = f"a CPU and {self._gpus:g} GPU" if self._gpus else "a CPU"
            problem = f"no machine of the cluster has {wanted} for a job"
            raise InputError(problem, allowed=f"what they have: {_described(machines)}")
        self._threads = threads_per_job(machines, min(self._jobs or room, self._runs), self._gpus)
        self._token = token_of(self._output)
        # On this machine, so that it is lost only with this process.
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        self._board = ray.remote(Board).options(num_cpus=0, scheduling_strategy=here).remote()
        self._task = ray.remote(do).options(
            num_cpus=self._threads,
            num_gpus=self._gpus,
            max_retries=0,
            scheduling_strategy="SPREAD",
            runtime_env={"env_vars": thread_counts(self._threads)},
        )

    def __exit__(self, *_: object) -> None:
        ray.shutdown()

    @property
    def free(self) -> int:
        # Machines may leave and join; without any, a job waits for one.
        most = self._jobs or max(1, slots(_machines(), self._threads, self._gpus))
        return max(0, most - len(self._running))

    def start(self, job: Job) -> None:
        self._submit(job, attempt=1)

    def events(self, timeout: float) -> list[Progressed | Ended]:
        ended, _ = ray.wait(list(self._running), timeout=timeout)
        # The last progress may arrive after the end, when it is obsolete.
        running = {job.name for job, _ in self._running.values()}
        events = [event for event in ray.get(self._board.take.remote()) if event.name in running]
        for task in ended:
            events += self._end(task)
        return events

    def interrupt(self) -> None:
        self._asked = True
        for task in self._running:
            ray.cancel(task)

    def _submit(self, job: Job, attempt: int) -> None:
        self._running[self._task.remote(job, self._output, self._token, self._board)] = job, attempt

    def _end(self, task: Any) -> list[Ended]:
        """How a task has ended, unless it is retried."""
        job, attempt = self._running.pop(task)
        try:
            return [ray.get(task)]
        except TaskCancelledError:
            return [Ended(job.name, "interrupted")]
        except NodeDiedError:
            if not self._asked and attempt < _ATTEMPTS:
                self._submit(job, attempt + 1)
                return []
            failure = Ended(job.name, "failed", f"its machine died, {attempt} times in a row")
        except WorkerCrashedError:
            failure = Ended(job.name, "failed", "its process died; Ray's logs on its machine may say why")
        except RayTaskError as error:
            failure = Ended(job.name, "failed", str(error).splitlines()[-1], str(error))
        except RayError as error:
            failure = Ended(job.name, "failed", str(error).splitlines()[0])
        return [Ended(job.name, "interrupted") if self._asked else failure]


def slots(machines: list[Machine], cpus: int, gpus: float) -> int:
    """Number of jobs with these CPUs and GPUs each that fit on the machines at once."""
    return sum(min(machine.cpus // cpus, _on_gpus(machine, gpus)) for machine in machines)


def threads_per_job(machines: list[Machine], jobs: int, gpus: float) -> int:
    """The largest number of CPUs per job with which all jobs run at once; at least one."""
    most = max(machine.cpus for machine in machines)
    return next((cpus for cpus in range(most, 1, -1) if slots(machines, cpus, gpus) >= jobs), 1)


def _on_gpus(machine: Machine, gpus: float) -> int:
    if not gpus:
        return machine.cpus
    # A fraction is one of a single GPU.
    return machine.gpus * int(1 / gpus) if gpus < 1 else machine.gpus // int(gpus)


def _machines() -> list[Machine]:
    alive = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    return [Machine(int(has.get("CPU", 0)), int(has.get("GPU", 0))) for has in alive]


def _described(machines: list[Machine]) -> str:
    return ", ".join(f"{machine.cpus} CPU and {machine.gpus} GPU" for machine in machines)


def _connect(address: str | None) -> None:
    """Join the cluster, or start one. Raises InputError if that fails."""
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    former = signal.getsignal(signal.SIGTERM)
    try:
        if address is None:
            quiet |= {"include_dashboard": False, "object_store_memory": _OBJECT_STORE_BYTES}
            ray.init("local", num_cpus=cores(), **quiet)
        else:
            # Ray itself retries for minutes.
            socket.create_connection(_host_and_port(address), _CONNECT_SECONDS).close()
            ray.init(address, **quiet)
    except (OSError, RuntimeError, ValueError, RayError) as error:
        reason = (str(error).splitlines() or [repr(error)])[0]
        if address is None:
            raise InputError(f"Ray cannot be started here ({reason})") from None
        allowed = "the host:port of `ray start --head`, under its RAY_AUTH_MODE and token"
        raise InputError(f"no cluster can be joined ({reason})", file=f"`address` {address}", allowed=allowed) from None
    finally:
        signal.signal(signal.SIGTERM, former)  # which Ray replaces


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise ValueError("no host:port")
    return host, int(port)
