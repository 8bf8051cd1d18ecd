"""The parts of a Ray cluster that do not import Ray: its set-up, the task that does a job, and the progress board."""

from __future__ import annotations

import os
import secrets
import signal
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dlion_sim.errors import InputError
from dlion_sim.sweep.job import Ended, Job, Progressed, work
from dlion_sim.sweep.lock import shared


def prepare_ray(*, private: bool) -> None:
    """Disable Ray's usage statistics and, if `private`, make it accept only this process.

    Ray listens on every interface and executes whatever it receives, so it gets a secret token. Must be called before
    Ray is imported, which reads its environment then. Raises InputError if Ray is not installed.
    """
    if find_spec("ray") is None:
        raise InputError("needs the package ray", allowed="pip install 'dlion-sim[ray]'")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if private:
        os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))


class Board:
    """An actor that keeps the latest progress of each job until it is taken."""

    def __init__(self) -> None:
        self._latest: dict[str, Progressed] = {}

    def tell(self, event: Progressed) -> None:
        """Set a job's latest progress."""
        self._latest[event.name] = event

    def take(self) -> list[Progressed]:
        """All progress since the last call."""
        taken, self._latest = self._latest, {}
        return list(taken.values())


def do(job: Job, output: Path, token: str, board: Any) -> Ended:
    """Do a job on this machine, if it sees the sweep's folder `output`; `board` is the handle of a `Board`."""
    asked = threading.Event()
    # Ray cancels a running task with it: the job ends early.
    former = signal.signal(signal.SIGINT, lambda *_: asked.set())
    try:
        with shared(output, token):
            return work(job, asked.is_set, lambda event: board.tell.options(num_returns=0).remote(event))
    except InputError as error:
        return Ended(job.name, "failed", str(error))
    finally:
        signal.signal(signal.SIGINT, former)
