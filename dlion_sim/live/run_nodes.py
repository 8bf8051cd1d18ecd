"""The processes of a run's nodes, which may go and come back."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import isfinite
from pathlib import Path

from dlion_sim.assembly import Setting
from dlion_sim.errors import InputError
from dlion_sim.learning.process import Device
from dlion_sim.live.gathering import log_of, part_folder
from dlion_sim.live.node_config import LEFT
from dlion_sim.live.nodes import Nodes, Places, Process
from dlion_sim.live.timeouts import Timeouts
from dlion_sim.scenario import dump


class RunNodes(Nodes):
    """The nodes of a run, which write their parts into the folder `parts`.

    Those that are not there at the start, or come back later, have a process that stands by: it takes seconds until one
    is ready.
    """

    def __init__(
        self,
        setting: Setting,
        parts: Path,
        places: Places,
        *,
        paced: bool,
        timeouts: Timeouts,
        device: Device = "auto",
    ) -> None:
        scenario = parts / "scenario.yaml"
        options = [f"--start-within={timeouts.start}", f"--silence={timeouts.silence}", f"--output={parts}"]
        options += [f"--device={device}", *([] if paced else ["--no-pacing"])]
        super().__init__(parts, ["node", str(scenario), *options], places)
        self.setting = setting
        self._scenario = scenario
        self._former: list[Process] = []
        """Whose place others have taken."""
        self._left: set[int] = set()
        """Processes that have left in good order."""
        self._standing_by: dict[int, Process] = {}
        self._incarnations: dict[int, int] = {}
        """Of those that stand by or, without such, take part."""

    def stand_by(self, rank: int, incarnation: int) -> None:
        """Have a process that can take a participant's place, which has had so many before."""
        self._incarnations[rank] = incarnation
        options = ["--join", "--stand-by", f"--incarnation={incarnation}"]
        self._standing_by[rank] = self._start(rank, self._log(rank), options)

    def join(self, rank: int, incarnation: int, began: float) -> None:
        """Have a participant join the run that began then, by `time.monotonic`, as its latest process."""
        if rank not in self._standing_by:
            self.stand_by(rank, incarnation)
        process = self._standing_by.pop(rank)
        assert process.stdin is not None
        with suppress(BrokenPipeError):  # It has died, which `wait` finds.
            process.stdin.write(f"{began!r}\n".encode())
            process.stdin.flush()
        if rank in self.processes:
            self._former.append(self.processes[rank])
        self.processes[rank] = process  # from now on somebody else may ask it to end

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
    ) -> bool:
        """As other nodes do. Raises InputError where none has begun, too."""
        asked = super().wait(interrupted, observe, expects_more)
        if not any(part_folder(self._folder, rank).exists() for rank in self.processes):
            raise InputError(f"no node could start: {self.last_words(0)}")
        return asked

    def _ask_to_end(self) -> None:
        if self.clock.seconds is None:
            self._end()
            raise InputError("interrupted before it began")
        super()._ask_to_end()

    def _start_all(self) -> None:
        self._scenario.write_text(dump(self.setting.scenario))
        absent = self.setting.outages.absent_at_start if self.setting.outages else frozenset()
        for rank in self._coming():
            self.stand_by(rank, 0 if rank in absent else 1)
        for rank, process in self._standing_by.items():
            self._wait_for(rank, process)
        for rank, spot in enumerate(self._spots):
            if rank not in absent:
                log = log_of(part_folder(self._folder, rank))
                self.processes[rank] = self._start(rank, log, ["--incarnation=0"], spot.listener)

    def _coming(self) -> Sequence[int]:
        """Who comes, or comes back, in the course of the run."""
        outages, ranks = self.setting.outages, range(self.setting.participants)
        return [rank for rank in ranks if outages and any(isfinite(each.end) for each in outages.participant(rank))]

    def _wait_for(self, rank: int, process: Process) -> None:
        """Until a process stands by. Raises InputError where it cannot."""
        assert process.stdout is not None
        if not process.stdout.readline():
            raise InputError(f"node {rank} could not start: {self.last_words(rank)}")

    def _has_left(self, rank: int) -> bool:
        """Whether a participant has told that it has left; what is left to do is to write down its part."""
        told = self.processes[rank].stdout
        assert told is not None
        os.set_blocking(told.fileno(), False)
        if LEFT.encode() in (told.read() or b""):
            self._left.add(self.processes[rank].pid)
        return self.processes[rank].pid in self._left

    def _all(self) -> Sequence[Process]:
        return [*self._former, *super()._all()]

    def _end(self) -> None:
        self._former += self._standing_by.values()
        super()._end()

    def _log(self, rank: int) -> Path:
        return log_of(part_folder(self._folder, rank, self._incarnations.get(rank, 0)))
