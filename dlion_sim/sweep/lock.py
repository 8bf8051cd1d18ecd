"""Locks of sweep folders, so that one sweep at a time uses a folder."""

from __future__ import annotations

import fcntl
import os
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from dlion_sim.errors import InputError
from dlion_sim.results.run_folder import holds_run

LOCK = ".lock"
TASKS = ".tasks"
_TIMEOUT_SECONDS = 3.0
_POLL_SECONDS = 0.05


@contextmanager
def locked(output: Path) -> Iterator[int]:
    """Hold the folder `output`, created if missing; yields a file descriptor.

    The lock is released with the last process that has the descriptor or is in a block `shared`, however it ends.
    Raises InputError if another sweep holds the folder, or if it cannot be used.
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
        with (output / TASKS).open("a") as tasks:
            _take(tasks.fileno(), output)
        # A task of a former sweep that starts only now finds another token.
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, secrets.token_hex(16).encode(), 0)
        os.fsync(descriptor)  # for machines that see it over a network
        yield descriptor
    finally:
        os.close(descriptor)


def token_of(output: Path) -> str:
    """The token of the sweep that holds the folder; empty if its lock is not visible."""
    try:
        return (output / LOCK).read_text()
    except OSError:
        return ""


@contextmanager
def shared(output: Path, token: str) -> Iterator[None]:
    """Use, on any machine, a folder that a sweep holds: no other sweep can lock it before the block ends.

    Raises InputError if this machine does not see the folder with that sweep's token.
    """
    with ExitStack() as stack:
        with suppress(OSError):  # Where it is not there, the token is not either.
            fcntl.flock(stack.enter_context((output / TASKS).open()), fcntl.LOCK_SH)
        if token_of(output) != token:
            problem = f"is not the sweep's folder on {socket.gethostname()}"
            raise InputError(problem, file=output, allowed="a folder shared by all machines")
        yield


def _take(descriptor: int, output: Path) -> None:
    """Lock; waits a little, as processes of a killed sweep may still be ending."""
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                problem = "another sweep uses this folder"
                raise InputError(problem, file=output, allowed="another `output`, or wait until it ends") from None
            time.sleep(_POLL_SECONDS)
        else:
            return
