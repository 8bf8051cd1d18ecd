"""The processes of a run's nodes on this machine."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Self

from dlion_sim.assembly import Setting
from dlion_sim.errors import InputError
from dlion_sim.live.clock import Clock
from dlion_sim.live.gathering import log_of, part_folder
from dlion_sim.live.node_config import LEFT
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
    """Of the node's command, besides those of all."""
    enter: Sequence[str] = ()
    """The command that runs another one there, if need be."""
    listener: socket.socket | None = None
    """What listens already at the address."""


class Nodes(ABC):
    """The processes of a run's nodes, which write their parts into the folder `parts`. None outlives the block.

    Those that are not there at the start, or come back later, have a process that stands by: it takes seconds until one
    is ready.
    """

    def __init__(self, setting: Setting, parts: Path, *, paced: bool, timeouts: Timeouts) -> None:
        self.setting = setting
        self._parts = parts
        self._options = [f"--start-within={timeouts.start}", f"--silence={timeouts.silence}"]
        if not paced:
            self._options.append("--no-pacing")
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        """That take part or have, by rank: the latest ones."""
        self._former: list[subprocess.Popen[bytes]] = []
        """Whose place others have taken."""
        self._left: set[int] = set()
        """Processes that have left in good order."""
        self._standing_by: dict[int, subprocess.Popen[bytes]] = {}
        self._incarnations: dict[int, int] = {}
        """Of those that stand by or, without such, take part."""

    @abstractmethod
    def spots(self, opened: ExitStack) -> Sequence[Spot]:
        """Where each is to be, by rank; sockets in `opened` are closed once the nodes have them."""

    def __enter__(self) -> Self:
        scenario, secret = self._parts / "scenario.yaml", self._parts / "secret"
        scenario.write_text(dump(self.setting.scenario))
        write_secret(secret)
        absent = self.setting.outages.absent_at_start if self.setting.outages else frozenset()
        with ExitStack() as undo, ExitStack() as sockets:
            undo.callback(self._end)
            self._spots = self.spots(sockets)
            peers = ",".join(str(spot.address) for spot in self._spots)
            self._arguments = [str(scenario), f"--peers={peers}", f"--secret-file={secret}"]
            for rank in self._coming():
                self.stand_by(rank, 0 if rank in absent else 1)
            for rank, process in self._standing_by.items():
                self._wait_for(rank, process)
            present = [rank for rank in range(len(self._spots)) if rank not in absent]
            for rank in present:
                spot = self._spots[rank]
                listening = [f"--listen-fd={spot.listener.fileno()}"] if spot.listener else []
                self._incarnations.setdefault(rank, 0)
                self.processes[rank] = self._start(rank, 0, listening, spot.listener)
            told = self.processes[present[0]].stdout
            assert told is not None
            self.clock = Clock(told)
            undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def stand_by(self, rank: int, incarnation: int) -> None:
        """Have a process that can take a participant's place, which has had so many before."""
        self._incarnations[rank] = incarnation
        self._standing_by[rank] = self._start(rank, incarnation, ["--join", "--stand-by"], None)

    def join(self, rank: int, incarnation: int, began: float) -> None:
        """Have a participant join the run that began then, by `time.monotonic`, as its latest process."""
        if rank not in self._standing_by:
            self.stand_by(rank, incarnation)
        if rank in self.processes:
            self._former.append(self.processes[rank])
        self.processes[rank] = process = self._standing_by.pop(rank)
        assert process.stdin is not None
        with suppress(BrokenPipeError):  # It has died, which `wait` finds.
            process.stdin.write(f"{began!r}\n".encode())
            process.stdin.flush()

    def tell_to_leave(self, rank: int) -> None:
        """Have a participant leave in good order."""
        self.processes[rank].send_signal(signal.SIGTERM)

    def kill(self, rank: int) -> bool:
        """End a participant's process, unless it has left; whether that was so."""
        if self.processes[rank].poll() is not None or self._has_left(rank):
            return False
        self.processes[rank].kill()
        return True

    @property
    def all_had_to_go(self) -> bool:
        """Whether every process was killed or told to leave, so that the run is not over."""
        return all(each.poll() == -signal.SIGKILL or self._has_left(rank) for rank, each in self.processes.items())

    def wait(
        self,
        interrupted: Callable[[], bool],
        observe: Callable[[float | None], None] = lambda seconds: None,
        expects_more: Callable[[], bool] = lambda: False,
    ) -> None:
        """Wait until all have ended, and meanwhile call all again and again: `observe` with what the clock says.

        `expects_more` says whether somebody is still to come when nobody is there. Raises InputError where a node could
        not start.
        """
        asked = False
        while any(process.poll() is None for process in self._all()) or (not asked and expects_more()):
            observe(self.clock.seconds)
            if not asked and interrupted():
                asked = True
                for process in self._all():
                    process.send_signal(signal.SIGINT)
            for rank, process in list(self.processes.items()):
                if process.poll() == _COULD_NOT_START and not asked:
                    raise InputError(f"node {rank} could not start: {self._last_words(rank)}")
            time.sleep(_POLL_SECONDS)
        if not any(part_folder(self._parts, rank).exists() for rank in self.processes):
            raise InputError("interrupted before it began" if asked else f"no node could start: {self._last_words(0)}")

    def _all(self) -> Sequence[subprocess.Popen[bytes]]:
        return [*self._former, *self.processes.values()]

    def _has_left(self, rank: int) -> bool:
        """Whether a participant has told that it has left; what is left to do is to write down its part."""
        told = self.processes[rank].stdout
        assert told is not None
        os.set_blocking(told.fileno(), False)
        if LEFT.encode() in (told.read() or b""):
            self._left.add(self.processes[rank].pid)
        return self.processes[rank].pid in self._left

    def _coming(self) -> Sequence[int]:
        """Who comes, or comes back, in the course of the run."""
        outages, ranks = self.setting.outages, range(self.setting.participants)
        return [rank for rank in ranks if outages and any(isfinite(each.end) for each in outages.participant(rank))]

    def _start(
        self, rank: int, incarnation: int, options: Sequence[str], listener: socket.socket | None
    ) -> subprocess.Popen[bytes]:
        spot = self._spots[rank]
        command = [
            *(*spot.enter, sys.executable, "-P", "-m", "dlion_sim", "node", *self._arguments),
            *(*self._options, *spot.options, *options, "--attached"),
            *(f"--rank={rank}", f"--incarnation={incarnation}", f"--output={self._parts}"),
        ]
        with log_of(part_folder(self._parts, rank, incarnation)).open("wb") as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,  # A few short lines, for which its buffer has room.
                stderr=log,
                pass_fds=[listener.fileno()] if listener else [],
                # Ctrl-C at the terminal is for the coordinator alone, which then ends the nodes.
                start_new_session=True,
            )

    def _wait_for(self, rank: int, process: subprocess.Popen[bytes]) -> None:
        """Until a process stands by. Raises InputError where it cannot."""
        assert process.stdout is not None
        if not process.stdout.readline():
            raise InputError(f"node {rank} could not start: {self._last_words(rank)}")

    def _end(self) -> None:
        processes = [*self._all(), *self._standing_by.values()]
        for process in processes:
            process.kill()
        for process in processes:
            process.communicate()

    def _last_words(self, rank: int) -> str:
        log = log_of(part_folder(self._parts, rank, self._incarnations.get(rank, 0)))
        lines = log.read_text(errors="replace").strip().splitlines()
        told = [line for line in lines if line.startswith("dlion: ")] or lines
        return told[-1].removeprefix("dlion: ") if told else "it ended without a word"
