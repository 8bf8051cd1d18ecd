"""One sweep at a time on a folder."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dlion_sim.errors import InputError
from dlion_sim.results.run_folder import holds_run

LOCK = ".lock"
_PATIENCE_SECONDS = 3.0
_POLL_SECONDS = 0.05


@contextmanager
def locked(output: Path) -> Iterator[int]:
    """Hold the folder `output`, made where it is missing; the value is a file descriptor.

    The lock goes with the last process that has the descriptor, however it ends. Raises InputError where another sweep
    holds the folder, or it cannot be used.
    """
    if holds_run(output):
        raise InputError("is a run folder", file=output, allowed="a folder for the sweep's run folders")
    try:
        output.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(output / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror}", file=output, allowed="a folder where you may write"
        ) from error
    try:
        _take(descriptor, output)
        yield descriptor
    finally:
        os.close(descriptor)


def _take(descriptor: int, output: Path) -> None:
    """Lock; waits a little, since the processes of a sweep that was killed take a moment to notice."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                problem = "another sweep is at work here"
                raise InputError(problem, file=output, allowed="another --output, or waiting for its end") from None
            time.sleep(_POLL_SECONDS)
        else:
            return
