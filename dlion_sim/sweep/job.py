"""A sweep's jobs: what any process with access to its folder can do, and the interface of executors that do them."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from dlion_sim.errors import InputError, OwnCodeError
from dlion_sim.results import Run, RunWriter, Status, mark
from dlion_sim.results.run_folder import holds_run
from dlion_sim.scenario import Scenario, dump, from_data
from dlion_sim.sweep.identity import costs_left_open, is_of
from dlion_sim.sweep.points import Point
from dlion_sim.yaml_text import read_yaml


class Job(msgspec.Struct, frozen=True):
    """A run to do: self-contained, and encodable as JSON."""

    name: str
    folder: str
    """The run folder. A run in it is not completed."""
    scenario: str
    """The resolved scenario as YAML, as the run folder will have it."""
    manifest: dict[str, Any]
    """Entries of the run folder's manifest about the sweep and the system."""
    device: Literal["auto", "cpu", "cuda"]
    until: float | None = None
    """The virtual time (s) at which the run pauses; None: it is completed."""

    @classmethod
    def of(cls, point: Point, output: Path, device: Literal["auto", "cpu", "cuda"], until: float | None = None) -> Job:
        """The job of a point that was checked, with its run folder in `output`."""
        from dlion_sim.protocol.compose import compose  # imports PyTorch, which a sweep without jobs does not need

        scenario = point.scenario()
        system = compose(scenario.system, scenario.modules)
        resolved = scenario.model_copy(update={"system": system.spec})
        return cls(
            name=point.name,
            folder=str((output / point.name).absolute()),
            scenario=dump(resolved),
            manifest={
                "replaced": dict(system.replaced),
                "sweep": {
                    "point": dict(point.labels),
                    "digest": point.digest,
                    "left_open": costs_left_open(scenario),
                },
            },
            device=device,
            until=until,
        )


class Progressed(msgspec.Struct, frozen=True, tag="progressed"):
    """Progress of a run."""

    name: str
    fraction: float
    """From 0 to 1."""
    metric_text: str
    """The workers' mean metric at the last evaluation, as text; empty before one."""


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """A run has ended."""

    name: str
    status: Status
    problem: str = ""
    """Why it failed, in a line."""
    trace: str = ""
    """Python's traceback, unless the input is at fault."""


def work(job: Job, interrupted: Callable[[], bool], tell: Callable[[Progressed], None]) -> Ended:
    """Do a job, until `interrupted`; returns how it ended, whatever goes wrong.

    A run that ended early is resumed from its last checkpoint. One that pauses at its `until` is "completed".
    """
    from dlion_sim.own_code import own_errors_told
    from dlion_sim.simulation import Progress, resume, simulate

    folder = Path(job.folder)
    try:
        scenario = from_data(read_yaml(job.scenario))

        def observe(progress: Progress) -> None:
            tell(Progressed(job.name, fraction_done(scenario, job.until, progress), _metric_text(progress)))

        run = None
        with own_errors_told(scenario.references):
            if _is_begun(job, scenario):
                # Without a usable checkpoint, it starts again.
                with suppress(InputError):
                    run = resume(folder, until=job.until, interrupted=interrupted, observe=observe)
            run = run or simulate(
                scenario,
                folder,
                device=job.device,
                force=True,
                manifest=job.manifest,
                until=job.until,
                interrupted=interrupted,
                observe=observe,
            )
    except InputError as error:
        return Ended(job.name, "failed", str(error))
    except OwnCodeError as error:
        return Ended(job.name, "failed", error.problem, error.trace)
    except Exception as error:
        problem = str(error) if isinstance(error, OSError) else repr(error)
        return Ended(job.name, "failed", problem, traceback.format_exc())
    summary = run.summary or {}
    if summary.get("stopped_by") == "pause":
        return Ended(job.name, "completed")
    failure = summary["stopped_by"] if summary.get("status") == "failed" else ""
    return Ended(job.name, run.manifest["status"], failure)


def record_failure(job: Job, ended: Ended) -> None:
    """Record the failure in the job's folder, even if the run did not start. Raises OSError, InputError."""
    folder = Path(job.folder)
    if not holds_run(folder):
        scenario = from_data(read_yaml(job.scenario))
        about = {"scenario": scenario.name, "system": scenario.system.name, "seed": scenario.seed}
        about["evaluated_on"] = scenario.workload.evaluated_on
        RunWriter.create(folder, scenario_yaml=job.scenario, manifest={**about, **job.manifest})
    mark(folder, "failed", problem=ended.problem, trace=ended.trace)


def _is_begun(job: Job, scenario: Scenario) -> bool:
    """Whether the job's folder has the same run, neither completed nor failed."""
    folder = Path(job.folder)
    if not holds_run(folder):
        return False
    run = Run.open(folder)
    if run.manifest["status"] not in ("running", "interrupted"):
        return False
    same = run.manifest.get("sweep", {}).get("digest") == job.manifest["sweep"]["digest"]
    return same or is_of(run, scenario)


def _metric_text(progress: Any) -> str:
    return "" if progress.score is None else f"{progress.metric.name} {progress.metric.written(progress.score)}"


def fraction_done(scenario: Scenario, until: float | None, progress: Any) -> float:
    """Progress of a run, from 0 to 1, to its pause at `until` (s) or to its end."""
    ends = [
        progress.virtual_seconds / until if until else 0.0,
        progress.virtual_seconds / scenario.duration if scenario.duration else 0.0,
        progress.iterations / scenario.iterations if scenario.iterations else 0.0,
    ]
    return min(1.0, max(ends))


class Executor(Protocol):
    """Does jobs in parallel. Each started job ends with one `Ended`, whatever happens to its process."""

    @property
    def free(self) -> int:
        """Number of jobs that can be started now."""

    def start(self, job: Job) -> None:
        """Start a job; only if `free` is above 0."""

    def events(self, timeout: float) -> list[Progressed | Ended]:
        """Events since the last call; waits up to `timeout` seconds for one."""

    def interrupt(self) -> None:
        """Ask all jobs to end early, with readable run folders."""


class Started(msgspec.Struct, frozen=True):
    """A run starts."""

    name: str


_POLL_SECONDS = 0.1


def run_all(
    jobs: Iterable[Job | None], executor: Executor, interrupted: Callable[[], bool]
) -> Iterator[Started | Progressed | Ended]:
    """Do all jobs, and yield their events; a job that fails is recorded and does not affect others.

    Jobs may depend on the results of others: None means that there is none yet, and the next one is requested after the
    caller has processed all events so far. `interrupted` is checked several times a second; once it is true, no more
    jobs start, and running ones end early.
    """
    waiting = iter(jobs)
    running: dict[str, Job] = {}
    asked = False
    while True:
        if not asked and interrupted():
            asked = True
            executor.interrupt()
        while not asked and executor.free and (job := next(waiting, None)):
            executor.start(job)
            running[job.name] = job
            yield Started(job.name)
        if not running:
            return
        for event in executor.events(_POLL_SECONDS):
            if isinstance(event, Ended):
                job = running.pop(event.name)
                if event.status == "failed":
                    _record(job, event)
            yield event


def _record(job: Job, event: Ended) -> None:
    # If the folder cannot be written, which may be why the run failed, it reads as interrupted or to do.
    with suppress(OSError, InputError):
        record_failure(job, event)
