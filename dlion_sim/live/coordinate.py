"""A whole run on this machine: one process a participant, joined over loopback."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from dlion_sim.errors import InputError
from dlion_sim.live.gathering import gather, part_folder
from dlion_sim.live.patience import DEFAULT_PATIENCE, Patience
from dlion_sim.live.secret import write_secret
from dlion_sim.live.setting import Setting
from dlion_sim.live.sockets import Address, listen
from dlion_sim.results import Run, RunWriter, environment
from dlion_sim.scenario import Scenario, dump

_LOOPBACK = "127.0.0.1"
_POLL_SECONDS = 0.05
_COULD_NOT_START = 2
"""The exit code of such a node."""


def run_locally(
    scenario: Scenario,
    folder: Path,
    *,
    paced: bool = True,
    patience: Patience = DEFAULT_PATIENCE,
    force: bool = False,
    interrupted: Callable[[], bool] = lambda: False,
) -> Run:
    """Run a scenario by nodes on this machine and return its run folder; no process is left when this ends.

    `interrupted` is asked many times a second, and once it says so the run ends there, in a folder that tells it.
    `force` replaces a run that `folder` holds. Raises InputError for a scenario that cannot be run.
    """
    setting = Setting.of(scenario)
    setting.worker(0)
    manifest = {**environment(), **setting.manifest}
    # It says that the run is going on, until what the nodes have written takes its place.
    writer = RunWriter.create(folder, scenario_yaml=dump(setting.scenario), manifest=manifest, force=force)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as parts_in:
        parts = Path(parts_in)
        try:
            with LocalNodes(setting, parts, paced=paced, patience=patience) as nodes:
                nodes.wait(interrupted)
        except BaseException as error:
            writer.finish({"status": "failed", "stopped_by": str(error) or repr(error)})
            raise
        return gather(parts, folder, force=True)


class LocalNodes:
    """The processes of a run's nodes, which write their parts into the folder `parts`. None outlives the block."""

    def __init__(self, setting: Setting, parts: Path, *, paced: bool, patience: Patience) -> None:
        self._setting = setting
        self._parts = parts
        self._options = [f"--start-within={patience.start}", f"--silence={patience.silence}"]
        if not paced:
            self._options.append("--no-pacing")
        self.processes: list[subprocess.Popen[bytes]] = []
        """By rank."""

    def __enter__(self) -> LocalNodes:
        scenario, secret = self._parts / "scenario.yaml", self._parts / "secret"
        scenario.write_text(dump(self._setting.scenario))
        write_secret(secret)
        with ExitStack() as undo, ExitStack() as sockets:
            undo.callback(self._end)
            listeners = [
                sockets.enter_context(listen(Address(_LOOPBACK, 0))) for _ in range(self._setting.participants)
            ]
            peers = ",".join(str(Address(*listener.getsockname())) for listener in listeners)
            for rank, listener in enumerate(listeners):
                self._start(rank, listener.fileno(), [str(scenario), f"--peers={peers}", f"--secret-file={secret}"])
            undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def wait(self, interrupted: Callable[[], bool]) -> None:
        """Wait until all have ended. Raises InputError where one could not start."""
        asked = False
        while any(process.poll() is None for process in self.processes):
            if not asked and interrupted():
                asked = True
                for process in self.processes:
                    process.terminate()
            for rank, process in enumerate(self.processes):
                if process.poll() == _COULD_NOT_START and not asked:
                    raise InputError(f"node {rank} could not start: {self._last_words(rank)}")
            time.sleep(_POLL_SECONDS)
        if not any(part_folder(self._parts, rank).exists() for rank in range(len(self.processes))):
            raise InputError(f"no node could start: {self._last_words(0)}")

    def _start(self, rank: int, listener: int, arguments: list[str]) -> None:
        command = [sys.executable, "-m", "dlion_sim", "node", *arguments, *self._options]
        with self._log(rank).open("wb") as log:
            self.processes.append(
                subprocess.Popen(
                    [*command, f"--rank={rank}", f"--listen-fd={listener}", f"--output={self._parts}", "--attached"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=log,
                    pass_fds=[listener],
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
        return lines[-1].removeprefix("dlion: ") if lines else "it ended without a word"
