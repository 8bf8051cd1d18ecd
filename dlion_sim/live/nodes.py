"""The processes of a run's nodes on this machine."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from dlion_sim.assembly import Setting
from dlion_sim.errors import InputError
from dlion_sim.live.clock import Clock
from dlion_sim.live.gathering import part_folder
from dlion_sim.live.secret import write_secret
from dlion_sim.live.sockets import Address
from dlion_sim.live.timeouts import Timeouts
from dlion_sim.scenario import dump

_POLL_SECONDS = 0.05
_COULD_NOT_START = 2
"""The exit code of such a node."""


@dataclass(frozen=True)
class Spot:
    """Where a node of a run is to be."""

    address: Address
    options: Sequence[str] = ()
    """For `dlion node`."""
    enter: Sequence[str] = ()
    """The command that runs another one there, if need be."""
    listener: socket.socket | None = None
    """What listens already at the address."""


class Nodes(ABC):
    """The processes of a run's nodes, which write their parts into the folder `parts`. None outlives the block."""

    def __init__(self, setting: Setting, parts: Path, *, paced: bool, timeouts: Timeouts) -> None:
        self.setting = setting
        self._parts = parts
        self._options = [f"--start-within={timeouts.start}", f"--silence={timeouts.silence}"]
        if not paced:
            self._options.append("--no-pacing")
        self.processes: list[subprocess.Popen[bytes]] = []
        """By rank."""

    @abstractmethod
    def spots(self, opened: ExitStack) -> Sequence[Spot]:
        """Where each is to be, by rank; sockets in `opened` are closed once the nodes have them."""

    def __enter__(self) -> Self:
        scenario, secret = self._parts / "scenario.yaml", self._parts / "secret"
        scenario.write_text(dump(self.setting.scenario))
        write_secret(secret)
        with ExitStack() as undo, ExitStack() as sockets:
            undo.callback(self._end)
            spots = self.spots(sockets)
            peers = ",".join(str(spot.address) for spot in spots)
            for rank, spot in enumerate(spots):
                self._start(rank, spot, [str(scenario), f"--peers={peers}", f"--secret-file={secret}"])
            told = self.processes[0].stdout
            assert told is not None
            self.clock = Clock(told)
            undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def wait(
        self, interrupted: Callable[[], bool], observe: Callable[[float | None], None] = lambda seconds: None
    ) -> None:
        """Wait until all have ended, and meanwhile call both again and again: `observe` with what the clock says.

        Raises InputError where a node could not start.
        """
        asked = False
        while any(process.poll() is None for process in self.processes):
            observe(self.clock.seconds)
            if not asked and interrupted():
                asked = True
                for process in self.processes:
                    process.terminate()
            for rank, process in enumerate(self.processes):
                if process.poll() == _COULD_NOT_START and not asked:
                    raise InputError(f"node {rank} could not start: {self._last_words(rank)}")
            time.sleep(_POLL_SECONDS)
        if not any(part_folder(self._parts, rank).exists() for rank in range(len(self.processes))):
            raise InputError("interrupted before it began" if asked else f"no node could start: {self._last_words(0)}")

    def _start(self, rank: int, spot: Spot, arguments: list[str]) -> None:
        command = [
            *spot.enter,
            sys.executable,
            "-P",
            "-m",
            "dlion_sim",
            "node",
            *arguments,
            *self._options,
            *spot.options,
        ]
        listeners = [spot.listener.fileno()] if spot.listener else []
        command += [f"--listen-fd={number}" for number in listeners]
        with self._log(rank).open("wb") as log:
            self.processes.append(
                subprocess.Popen(
                    [*command, f"--rank={rank}", f"--output={self._parts}", "--attached"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,  # Two short lines, for which its buffer has room.
                    stderr=log,
                    pass_fds=listeners,
                    # Ctrl-C at the terminal is for the coordinator alone, which then ends the nodes.
                    start_new_session=True,
                )
            )

    def _end(self) -> None:
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.communicate()

    def _log(self, rank: int) -> Path:
        return part_folder(self._parts, rank).with_suffix(".log")

    def _last_words(self, rank: int) -> str:
        lines = self._log(rank).read_text(errors="replace").strip().splitlines()
        told = [line for line in lines if line.startswith("dlion: ")] or lines
        return told[-1].removeprefix("dlion: ") if told else "it ended without a word"
