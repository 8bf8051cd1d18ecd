"""Jobs done by processes on this machine, each of which does one after another."""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO

import msgspec

from dlion_sim.sweep.job import Ended, Job, Progressed

_DECODER = msgspec.json.Decoder(Progressed | Ended)


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0))


def thread_counts(threads: int) -> dict[str, str]:
    """The environment of a process whose libraries are to use so many threads."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
    return dict.fromkeys(names, str(threads))


class LocalProcesses:
    """An `Executor` of so many processes with so many threads each; leaving the block ends them.

    They hold on to the file descriptor `lock`, so that it is open for as long as any of them lives. What they have to
    say for themselves goes to the end of the file `log`.
    """

    def __init__(self, processes: int, threads: int, *, lock: int, log: Path) -> None:
        self._most = processes
        self._environment = {**os.environ, **thread_counts(threads)}
        self._lock = lock
        self._log = log
        self._selector = selectors.DefaultSelector()
        self._workers: list[_Worker] = []
        self._asked = False

    def __enter__(self) -> LocalProcesses:
        # All at once: it takes each of them seconds to get ready.
        for _ in range(self._most):
            self._new_worker()
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.process.communicate()
        self._selector.close()

    @property
    def free(self) -> int:
        return self._most - sum(worker.job is not None for worker in self._workers)

    def start(self, job: Job) -> None:
        """Begin a job, by a process that has none or, where one has died, by a new one."""
        idle = [worker for worker in self._workers if worker.job is None]
        (idle[0] if idle else self._new_worker()).give(job)

    def events(self, timeout: float) -> list[Progressed | Ended]:
        happened: list[Progressed | Ended] = []
        for key, _ in self._selector.select(timeout):
            worker: _Worker = key.data
            happened += worker.read()
            if worker.has_ended:
                happened += self._bury(worker)
        return happened

    def interrupt(self) -> None:
        self._asked = True
        for worker in self._workers:
            worker.process.terminate()

    def _new_worker(self) -> _Worker:
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "dlion_sim.sweep.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                pass_fds=[self._lock],
                env=self._environment,
                # Ctrl-C at the terminal is for the sweep alone, which then asks its processes for an end.
                start_new_session=True,
            )
        worker = _Worker(process)
        self._workers.append(worker)
        self._selector.register(worker.output, selectors.EVENT_READ, worker)
        return worker

    def _bury(self, worker: _Worker) -> list[Ended]:
        self._selector.unregister(worker.output)
        self._workers.remove(worker)
        worker.process.communicate()
        if worker.job is None:
            return []
        if self._asked:
            return [Ended(worker.job.name, "interrupted")]
        code = worker.process.returncode
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return [Ended(worker.job.name, "failed", f"its process {how}; {self._log.name} may say why")]


class _Worker:
    """One process and the job that it has."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process = process
        self.output: IO[bytes] = process.stdout
        self._input: IO[bytes] = process.stdin
        self._unread = b""
        self.job: Job | None = None
        self.has_ended = False

    def give(self, job: Job) -> None:
        """Hand it a job."""
        self.job = job
        with suppress(BrokenPipeError):  # It has died; reading finds that out.
            self._input.write(msgspec.json.encode(job) + b"\n")
            self._input.flush()

    def read(self) -> list[Progressed | Ended]:
        """What it has said; blocks where that is nothing."""
        received = os.read(self.output.fileno(), 1 << 16)
        self.has_ended = not received
        *lines, self._unread = (self._unread + received).split(b"\n")
        events = [_DECODER.decode(line) for line in lines]
        if any(isinstance(event, Ended) for event in events):
            self.job = None
        return events
