"""Who does a sweep's jobs: the interface that the runner needs, whether processes here or a cluster stand behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Protocol

import msgspec

from dlion_sim.errors import InputError
from dlion_sim.sweep.job import Ended, Job, Progressed, record_failure


class Executor(Protocol):
    """Does jobs side by side. Each job that was started ends with one `Ended`, whatever happens to its process."""

    @property
    def free(self) -> int:
        """How many more jobs may be started now."""

    def start(self, job: Job) -> None:
        """Begin a job; only while some are free."""

    def events(self, timeout: float) -> list[Progressed | Ended]:
        """What has happened since the last call; waits for so many seconds if that is nothing."""

    def interrupt(self) -> None:
        """Ask all jobs to end early, each in a run folder that says so."""


class Started(msgspec.Struct, frozen=True):
    """A run begins."""

    name: str


_POLL_SECONDS = 0.1


def run_all(
    jobs: Iterable[Job | None], executor: Executor, interrupted: Callable[[], bool]
) -> Iterator[Started | Progressed | Ended]:
    """Have all jobs done, and tell what happens; a job that fails is recorded and stops no other one.

    Jobs may depend on what others came to: None among them is none for now, and the next one is asked for only after
    whoever iterates has seen what happened until then.
    `interrupted` is asked several times a second: once it says so no more jobs begin, and those that run end early.
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
    # Where the folder cannot be written, which is likely why the run failed, it reads as interrupted or to do.
    with suppress(OSError, InputError):
        record_failure(job, event)
