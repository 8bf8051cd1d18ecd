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
    """Have Ray report nothing home and, if `private`, take orders from nobody but this process.

    A Ray that is started listens on every interface, and does whatever it is sent; so it gets a secret to be asked for.
    Raises InputError where Ray is not installed.
    """
    if find_spec("ray") is None:
        raise InputError("needs the package ray", allowed="pip install 'dlion-sim[ray]'")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if private:
        os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))


class Board:
    """An actor that keeps the latest word of each job until it is taken."""

    def __init__(self) -> None:
        self._latest: dict[str, Progressed] = {}

    def tell(self, event: Progressed) -> None:
        """Put up a word, in the place of the job's former one."""
        self._latest[event.name] = event

    def take(self) -> list[Progressed]:
        """All that has come since this was last asked."""
        taken, self._latest = self._latest, {}
        return list(taken.values())


def do(job: Job, output: Path, token: str, board: Any) -> Ended:
    """Do a job on this machine, if it sees the folder `output` of the sweep; `board` is the handle of a `Board`."""
    asked = threading.Event()
    # By which Ray cancels a task that runs: to the job it is a request to end early.
    former = signal.signal(signal.SIGINT, lambda *_: asked.set())
    try:
        with shared(output, token):
            return work(job, asked.is_set, lambda event: board.tell.options(num_returns=0).remote(event))
    except InputError as error:
        return Ended(job.name, "failed", str(error))
    finally:
        signal.signal(signal.SIGINT, former)
