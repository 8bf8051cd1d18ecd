"""The executor that runs jobs in processes on this machine."""

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
    """Number of CPU cores that this process may use."""
    return len(os.sched_getaffinity(0))


def thread_counts(threads: int) -> dict[str, str]:
    """Environment variables that limit libraries to this number of threads."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
    return dict.fromkeys(names, str(threads))


class LocalProcesses:
    """An `Executor` of `processes` with `threads` each; leaving the block ends them.

    They inherit the file descriptor `lock`, so the lock is held as long as any of them lives. Their standard error is
    appended to the file `log`.
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
        # All at once: each takes seconds to start.
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
        """Start a job in an idle process or, if one has died, in a new one."""
        idle = [worker for worker in self._workers if worker.job is None]
        (idle[0] if idle else self._new_worker()).give(job)

    def events(self, timeout: float) -> list[Progressed | Ended]:
        events: list[Progressed | Ended] = []
        for key, _ in self._selector.select(timeout):
            worker: _Worker = key.data
            events += worker.read()
            if worker.has_ended:
                events += self._remove(worker)
        return events

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
                # Ctrl-C at the terminal reaches only the sweep, which asks its processes to end.
                start_new_session=True,
            )
        worker = _Worker(process)
        self._workers.append(worker)
        self._selector.register(worker.output, selectors.EVENT_READ, worker)
        return worker

    def _remove(self, worker: _Worker) -> list[Ended]:
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
    """A process and its job."""

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
        self.job = job
        with suppress(BrokenPipeError):  # It has died; `read` handles that.
            self._input.write(msgspec.json.encode(job) + b"\n")
            self._input.flush()

    def read(self) -> list[Progressed | Ended]:
        """Its events; blocks until there is output."""
        received = os.read(self.output.fileno(), 1 << 16)
        self.has_ended = not received
        *lines, self._unread = (self._unread + received).split(b"\n")
        events = [_DECODER.decode(line) for line in lines]
        if any(isinstance(event, Ended) for event in events):
            self.job = None
        return events
