"""The processes of nodes on this machine."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from dlion_sim.errors import InputError
from dlion_sim.live.connection import Address, listen
from dlion_sim.live.gathering import log_of, part_folder
from dlion_sim.live.node_config import BEGUN, status_line
from dlion_sim.live.private_file import write_secret
from dlion_sim.live.timetable import Clock

_LOOPBACK = "127.0.0.1"
_POLL_SECONDS = 0.05
_COULD_NOT_START = 2
"""The exit code of a node with invalid input."""

Process = subprocess.Popen[bytes]


@dataclass(frozen=True)
class Spot:
    """The place of a node."""

    address: Address
    options: Sequence[str] = ()
    """Of the node's command, besides the common ones."""
    enter: Sequence[str] = ()
    """The command that runs another one there, if one is needed."""
    listener: socket.socket | None = None
    """A socket that listens there already; it is closed once the node has it."""


class Nodes:
    """The processes of a mesh of nodes at `spots`, by rank, each of the same `command` with options of its own.

    `folder` gets their secret and logs. No process outlives the block.
    """

    def __init__(self, folder: Path, command: Sequence[str], spots: Sequence[Spot]) -> None:
        self._folder = folder
        self._command = command
        self._spots = spots
        self.processes: dict[int, Process] = {}
        """The latest process of each rank that takes part, or has."""

    def __enter__(self) -> Self:
        write_secret(self._folder / "secret")
        try:
            self._start_all()
            rank, process = next(iter(self.processes.items()))
            assert process.stdout is not None
            self.clock = Clock(process.stdout, status_line(rank, BEGUN))
        except BaseException:
            self._end()
            raise
        finally:
            for spot in self._spots:
                if spot.listener:
                    spot.listener.close()
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def wait(
        self,
        interrupted: Callable[[], bool],
        observe: Callable[[float | None], None] = lambda seconds: None,
        expects_more: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Wait until all have ended. Returns whether they were asked to end, because of `interrupted`.

        Meanwhile all arguments are called many times a second: `observe` with the clock's seconds, `expects_more` to
        find out whether nodes are still to come when none is there. Raises InputError if a node could not start.
        """
        asked = False
        while any(process.poll() is None for process in self._all()) or (not asked and expects_more()):
            observe(self.clock.seconds)
            if asked := asked or interrupted():
                self._ask_to_end()  # each time: a node may have joined meanwhile
            for rank, process in list(self.processes.items()):
                if process.poll() == _COULD_NOT_START and not asked:
                    self._end()
                    raise InputError(f"node {rank} could not start: {self.last_words(rank)}")
            time.sleep(_POLL_SECONDS)
        return asked

    def last_words(self, rank: int) -> str:
        """The last line of a node's log, or why it has ended if the log says so."""
        lines = self._log(rank).read_text(errors="replace").strip().splitlines()
        errors = [line for line in lines if line.startswith("dlion: ")] or lines
        return errors[-1].removeprefix("dlion: ") if errors else "it ended without a word"

    def _start_all(self) -> None:
        for rank, spot in enumerate(self._spots):
            self.processes[rank] = self._start(rank, self._log(rank), listener=spot.listener)

    def _start(
        self, rank: int, log: Path, options: Sequence[str] = (), listener: socket.socket | None = None
    ) -> Process:
        spot = self._spots[rank]
        peers = ",".join(str(each.address) for each in self._spots)
        listeners = [listener.fileno()] if listener else []
        command = [
            *(*spot.enter, sys.executable, "-P", "-m", "dlion_sim", *self._command),
            *(f"--peers={peers}", f"--secret-file={self._folder / 'secret'}", *spot.options, *options),
            *(*(f"--listen-fd={number}" for number in listeners), f"--rank={rank}", "--attached"),
        ]
        with log.open("wb") as errors:
            return subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,  # Only its status, in a few short lines, for which the buffer has room.
                stderr=errors,
                pass_fds=listeners,
                # Ctrl-C at the terminal is for the coordinator alone, which then ends the nodes.
                start_new_session=True,
            )

    def _all(self) -> Sequence[Process]:
        return list(self.processes.values())

    def _ask_to_end(self) -> None:
        """May be called more than once."""
        for process in self._all():
            assert process.stdin is not None
            # A node that is still starting would miss a signal, which processes of a script's background jobs ignore.
            process.stdin.close()

    def _end(self) -> None:
        _kill(self._all())

    def _log(self, rank: int) -> Path:
        return log_of(part_folder(self._folder, rank))


def on_loopback(count: int) -> Sequence[Spot]:
    """So many nodes on this machine, connected over loopback, at free addresses."""
    listeners = [listen(Address(_LOOPBACK, 0)) for _ in range(count)]
    return [Spot(Address(*listener.getsockname()), listener=listener) for listener in listeners]


def _kill(processes: Sequence[Process]) -> None:
    for process in processes:
        process.kill()
    for process in processes:
        with process:  # waits, and closes its pipes
            pass
