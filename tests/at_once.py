"""Sweeps and recommendations whose runs are done in this process, as others take seconds to start.

As a program, `python -m tests.at_once N sweep ...` is that command, killed in the midst of its run number N.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dlion_sim.sweep import Estimate
from dlion_sim.sweep.job import Ended, Job, Progressed, work

ROOT = Path(__file__).parents[1]


class AtOnce:
    """An executor that does each job at once, in this process."""

    def __init__(self, *_: object, **__: object) -> None:
        self._ended: list[Ended] = []

    @property
    def free(self) -> int:
        return 1 - len(self._ended)

    def __enter__(self) -> AtOnce:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def start(self, job: Job) -> None:
        self._ended.append(work(job, lambda: False, self.progressed))

    def progressed(self, progressed: Progressed) -> None:
        pass

    def events(self, timeout: float) -> list[Ended]:
        ended, self._ended = self._ended, []
        return ended

    def interrupt(self) -> None:
        pass


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """All is done in this process, and nothing is begun to estimate how long that will take."""
    monkeypatch.setattr("dlion_sim.sweep.LocalProcesses", AtOnce)
    monkeypatch.setattr("dlion_sim.sweep.estimate", lambda *_, **__: Estimate(20.0, 10.0, 40.0))


class Killed(AtOnce):
    """Kills this process as soon as so many runs are done and the next one is under way."""

    done = 0
    before = 0

    def start(self, job: Job) -> None:
        super().start(job)
        self.done += 1

    def progressed(self, progressed: Progressed) -> None:
        if self.done == self.before and progressed.fraction > 0:
            os.kill(os.getpid(), signal.SIGKILL)


def killed(after: int, *arguments: str) -> None:
    """Have a command killed, below the current folder, in the midst of a run after so many others."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.at_once", str(after), *arguments]
    assert subprocess.run(command, env=environment, stdout=subprocess.DEVNULL).returncode == -signal.SIGKILL


if __name__ == "__main__":
    import dlion_sim.sweep
    from dlion_sim.cli.main import main

    Killed.before = int(sys.argv.pop(1))
    dlion_sim.sweep.LocalProcesses = Killed  # type: ignore[misc, assignment]
    main()
