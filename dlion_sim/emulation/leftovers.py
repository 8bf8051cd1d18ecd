"""Processes and control groups of an emulation, which are removed at its end, or before the next one.

A network is in namespaces, and the kernel removes a namespace with its last process. So it is enough to end processes,
and to remove the control groups that limited them. Processes have in their environment, and control
groups in their name, the name of their emulation's folder, which is locked while that runs.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dlion_sim.emulation.cpu import remove_groups
from dlion_sim.errors import InputError
from dlion_sim.results import FolderLock

_FOLDERS = Path("/run/dlion-emulation")
_MARK = "DLION_EMULATION"
_POLL_SECONDS = 0.02
_SECONDS_TO_END = 10.0


@contextmanager
def workplace() -> Iterator[Path]:
    """A folder for one emulation. After the block it is gone, and so is every process that was started within."""
    with _alone():
        _remove_leftovers()
        folder = Path(tempfile.mkdtemp(dir=_FOLDERS))
        lock = FolderLock(folder)
    os.environ[_MARK] = str(folder)
    try:
        yield folder
    finally:
        del os.environ[_MARK]
        _remove(folder)
        lock.close()


def remove_leftovers() -> int:
    """Remove the leftovers of emulations that were killed, and return their number."""
    with _alone():
        return _remove_leftovers()


def _remove_leftovers() -> int:
    dead = [folder for folder in _FOLDERS.iterdir() if not _locked(folder)]
    for folder in dead:
        _remove(folder)
    return len(dead)


@contextmanager
def _alone() -> Iterator[None]:
    """Exclude the start and cleaning of other emulations."""
    _FOLDERS.mkdir(mode=0o700, exist_ok=True)
    lock = os.open(_FOLDERS, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _locked(folder: Path) -> bool:
    """Whether the emulation of this folder runs."""
    try:
        FolderLock(folder).close()
    except InputError:
        return True
    return False


def _remove(folder: Path) -> None:
    deadline = time.monotonic() + _SECONDS_TO_END
    while (processes := _processes(folder)) and time.monotonic() < deadline:
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(_POLL_SECONDS)
    remove_groups(folder.name)
    shutil.rmtree(folder)


def _processes(folder: Path) -> list[int]:
    """The processes that run now and belong to the emulation of this folder."""
    mark = f"{_MARK}={folder}".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # It has ended meanwhile.
            if mark in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
    return found
