"""The processes of nodes on this machine."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from dlion_sim.errors import InputError
from dlion_sim.live.clock import Clock
from dlion_sim.live.gathering import log_of, part_folder
from dlion_sim.live.secret import write_secret
from dlion_sim.live.sockets import Address, listen

_LOOPBACK = "127.0.0.1"
_POLL_SECONDS = 0.05
_COULD_NOT_START = 2
"""The exit code of such a node."""

Process = subprocess.Popen[bytes]


@dataclass(frozen=True)
class Spot:
    """Where a node is to be."""

    address: Address
    options: Sequence[str] = ()
    """Of the node's command, besides those of all."""
    enter: Sequence[str] = ()
    """The command that runs another one there, if need be."""
    listener: socket.socket | None = None
    """What listens already at the address."""


Places = Callable[[ExitStack], Sequence[Spot]]
"""Says where nodes are to be, by rank; sockets in the stack are closed once the nodes have them."""


class Nodes:
    """The processes of nodes that belong together, each of them the same `command` with options of its own.

    `folder` gets their secret, and what they say. None outlives the block.
    """

    def __init__(self, folder: Path, command: Sequence[str], places: Places) -> None:
        self._folder = folder
        self._command = command
        self._places = places
        self._spots: Sequence[Spot] = ()
        self.processes: dict[int, Process] = {}
        """That take part or have, by rank: the latest ones."""

    def __enter__(self) -> Self:
        write_secret(self._folder / "secret")
        with ExitStack() as undo, ExitStack() as sockets:
            undo.callback(self._end)
            self._spots = self._places(sockets)
            self._start_all()
            told = next(iter(self.processes.values())).stdout
            assert told is not None
            self.clock = Clock(told)
            undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def wait(
        self,
        interrupted: Callable[[], bool],
        observe: Callable[[float | None], None] = lambda seconds: None,
        expects_more: Callable[[], bool] = lambda: False,
    ) -> bool:
        """Wait until all have ended, and meanwhile call all again and again: `observe` with what the clock says.

        `expects_more` says whether somebody is still to come when nobody is there. Returns whether they were asked to
        end. Raises InputError where a node could not start.
        """
        asked = False
        while any(process.poll() is None for process in self._all()) or (not asked and expects_more()):
            observe(self.clock.seconds)
            if asked := asked or interrupted():
                self._ask_to_end()  # again and again: somebody may have come meanwhile
            for rank, process in list(self.processes.items()):
                if process.poll() == _COULD_NOT_START and not asked:
                    self._end()
                    raise InputError(f"node {rank} could not start: {self.last_words(rank)}")
            time.sleep(_POLL_SECONDS)
        return asked

    def last_words(self, rank: int) -> str:
        """What a node said last, if that tells why it has ended."""
        lines = self._log(rank).read_text(errors="replace").strip().splitlines()
        told = [line for line in lines if line.startswith("dlion: ")] or lines
        return told[-1].removeprefix("dlion: ") if told else "it ended without a word"

    def _start_all(self) -> None:
        for rank, spot in enumerate(self._spots):
            self.processes[rank] = self._start(rank, self._log(rank), listener=spot.listener)

    def _start(
        self, rank: int, says: Path, options: Sequence[str] = (), listener: socket.socket | None = None
    ) -> Process:
        """A process, and where what it says is to be."""
        spot = self._spots[rank]
        peers = ",".join(str(each.address) for each in self._spots)
        listeners = [listener.fileno()] if listener else []
        command = [
            *(*spot.enter, sys.executable, "-P", "-m", "dlion_sim", *self._command),
            *(f"--peers={peers}", f"--secret-file={self._folder / 'secret'}", *spot.options, *options),
            *(*(f"--listen-fd={number}" for number in listeners), f"--rank={rank}", "--attached"),
        ]
        with says.open("wb") as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,  # A few short lines, for which its buffer has room.
                stderr=log,
                pass_fds=listeners,
                # Ctrl-C at the terminal is for the coordinator alone, which then ends the nodes.
                start_new_session=True,
            )

    def _all(self) -> Sequence[Process]:
        """All that were to take part."""
        return list(self.processes.values())

    def _ask_to_end(self) -> None:
        """Once or more."""
        for process in self._all():
            assert process.stdin is not None
            # A node ends with it whenever it comes to look. One that only starts would miss a signal which it ignores,
            # as all do that a script's background job has started.
            process.stdin.close()

    def _end(self) -> None:
        _kill(self._all())

    def _log(self, rank: int) -> Path:
        return log_of(part_folder(self._folder, rank))


def on_loopback(count: int) -> Places:
    """So many nodes on this machine, joined over loopback: at addresses that are free, each with what listens there."""

    def places(opened: ExitStack) -> Sequence[Spot]:
        listeners = [opened.enter_context(listen(Address(_LOOPBACK, 0))) for _ in range(count)]
        return [Spot(Address(*listener.getsockname()), listener=listener) for listener in listeners]

    return places


def _kill(processes: Sequence[Process]) -> None:
    for process in processes:
        process.kill()
    for process in processes:
        with process:  # waits, and closes what leads to it
            pass
