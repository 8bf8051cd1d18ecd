"""What emulations are on this machine, and what is left of those that are over."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

FOLDERS = Path("/run/dlion-emulation")


def traces() -> tuple[object, ...]:
    """Folders, processes and control groups of emulations that do not run, and the devices of this machine."""
    processes = sorted(process for process, folder in marked() if not runs(folder))
    devices = subprocess.run(["ip", "-brief", "link"], capture_output=True, check=True).stdout
    groups = sorted(group for group, folder in control_groups() if not runs(folder))
    return processes, devices, groups, sorted(folder for folder in FOLDERS.glob("*") if not runs(folder))


def control_groups() -> Iterator[tuple[Path, Path]]:
    """Those of emulations, each with the emulation's folder."""
    hierarchies = Path("/sys/fs/cgroup")
    for group in (*hierarchies.glob("dlion-emulation-*"), *hierarchies.glob("*/dlion-emulation-*")):
        yield group, FOLDERS / group.name.removeprefix("dlion-emulation-").rpartition("-")[0]


def marked() -> Iterator[tuple[int, Path]]:
    """Processes of emulations, each with the emulation's folder."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            variables = (process / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        for variable in variables:
            if variable.startswith(b"DLION_EMULATION="):
                yield int(process.name), Path(variable.decode().partition("=")[2])


def runs(folder: Path) -> bool:
    """Whether an emulation holds this folder's lock."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def folder_of(emulator: int) -> Path | None:
    """The folder of the emulation that this process runs, once its nodes are there."""
    for process, folder in marked():
        try:
            parent = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
        if int(parent) == emulator:
            return folder
    return None


def node(folder: Path, rank: int) -> int:
    """The process of a node."""
    for process, of_emulation in marked():
        if of_emulation == folder and f"--rank={rank}".encode() in Path(f"/proc/{process}/cmdline").read_bytes():
            return process
    raise LookupError(rank)
