"""The processes of a run's nodes, which may leave and return."""

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
from dlion_sim.live.node_config import LEFT, STANDS_BY, Timeouts, status_line
from dlion_sim.live.nodes import Nodes, Process, Spot
from dlion_sim.live.timetable import wait_for
from dlion_sim.scenario import dump


class RunNodes(Nodes):
    """The nodes of a run, which write their parts into the folder `parts`.

    Those that join later have a process that stands by, as starting one takes seconds.
    """

    def __init__(
        self,
        setting: Setting,
        parts: Path,
        spots: Sequence[Spot],
        *,
        paced: bool,
        timeouts: Timeouts,
        device: Device = "auto",
    ) -> None:
        scenario = parts / "scenario.yaml"
        options = [f"--start-within={timeouts.start}", f"--silence={timeouts.silence}", f"--output={parts}"]
        options += [f"--device={device}", *([] if paced else ["--no-pacing"])]
        super().__init__(parts, ["node", str(scenario), *options], spots)
        self.setting = setting
        self._scenario = scenario
        self._former: list[Process] = []
        """Those that others have replaced."""
        self._left: set[int] = set()
        """The processes that have left gracefully."""
        self._standing_by: dict[int, Process] = {}
        self._incarnations: dict[int, int] = {}
        """Of the processes that stand by, or else take part."""

    def stand_by(self, rank: int, incarnation: int) -> None:
        """Start a process that can become this incarnation of a participant."""
        self._incarnations[rank] = incarnation
        options = ["--join", "--stand-by", f"--incarnation={incarnation}"]
        self._standing_by[rank] = self._start(rank, self._log(rank), options)

    def join(self, rank: int, incarnation: int, began: float) -> None:
        """Have an incarnation of a participant join the run that began then, by `time.monotonic`."""
        if rank not in self._standing_by:
            self.stand_by(rank, incarnation)
        process = self._standing_by.pop(rank)
        assert process.stdin is not None
        with suppress(BrokenPipeError):  # It has died, which `wait` notices.
            os.write(process.stdin.fileno(), f"{began!r}\n".encode())  # A buffer would keep it until it is closed.
        if rank in self.processes:
            self._former = [*_running(self._former), self.processes[rank]]
        self.processes[rank] = process  # from now on another thread may ask it to end

    def tell_to_leave(self, rank: int) -> None:
        """Have a participant leave gracefully."""
        self.processes[rank].send_signal(signal.SIGTERM)

    def kill(self, rank: int) -> bool:
        """Kill a participant's process, unless it has left; whether it was killed."""
        if self.processes[rank].poll() is not None or self._has_left(rank):
            return False
        self.processes[rank].kill()
        return True

    @property
    def all_are_down(self) -> bool:
        """Whether every process was killed or has left, so that the run is not over."""
        return all(each.poll() == -signal.SIGKILL or self._has_left(rank) for rank, each in self.processes.items())

    def wait(
        self,
        interrupted: Callable[[], bool],
        observe: Callable[[float | None], None] = lambda seconds: None,
        expects_more: Callable[[], bool] = lambda: False,
    ) -> bool:
        """As `Nodes.wait`. Raises InputError if none has begun, too."""
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
        for rank in self._joining():
            self.stand_by(rank, 0 if rank in absent else 1)
        for rank, process in self._standing_by.items():
            self._wait_for(rank, process)
        for rank, spot in enumerate(self._spots):
            if rank not in absent:
                log = log_of(part_folder(self._folder, rank))
                self.processes[rank] = self._start(rank, log, ["--incarnation=0"], spot.listener)

    def _joining(self) -> Sequence[int]:
        """The participants that join during the run, first or again."""
        outages, ranks = self.setting.outages, range(self.setting.participants)
        return [rank for rank in ranks if outages and any(isfinite(each.end) for each in outages.participant(rank))]

    def _wait_for(self, rank: int, process: Process) -> None:
        """Wait until a process stands by. Raises InputError if it cannot."""
        assert process.stdout is not None
        if not wait_for(process.stdout, status_line(rank, STANDS_BY)):
            raise InputError(f"node {rank} could not start: {self.last_words(rank)}")

    def _has_left(self, rank: int) -> bool:
        """Whether a participant has said that it has left; it may still be writing its part."""
        output = self.processes[rank].stdout
        assert output is not None
        os.set_blocking(output.fileno(), False)
        if status_line(rank, LEFT).encode() in (output.read() or b"").splitlines():
            self._left.add(self.processes[rank].pid)
        return self.processes[rank].pid in self._left

    def _all(self) -> Sequence[Process]:
        return [*self._former, *super()._all()]

    def _end(self) -> None:
        self._former += self._standing_by.values()
        super()._end()

    def _log(self, rank: int) -> Path:
        return log_of(part_folder(self._folder, rank, self._incarnations.get(rank, 0)))


def _running(processes: Sequence[Process]) -> Sequence[Process]:
    """Those that have not ended; the pipes of the others are closed."""
    running = [process for process in processes if process.poll() is None]
    for process in processes:
        if process not in running:
            with process:
                pass
    return running
