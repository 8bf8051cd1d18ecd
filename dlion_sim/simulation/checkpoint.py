"""The complete state of a simulation in a file, from which it goes on to the bit."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path

import torch

from dlion_sim.errors import InputError
from dlion_sim.results import RunWriter, environment
from dlion_sim.results.atomic import replacing
from dlion_sim.results.run_folder import CHECKPOINT
from dlion_sim.simulation.engine import Engine

_MOST_TIME = 0.05
"""Part of the wall time that saving may take."""


@dataclass(frozen=True)
class Checkpoint:
    """A simulation between two events."""

    engine: Engine
    rows: tuple[int, ...]
    """How many rows each table of the run folder had."""
    wall_seconds: float
    """That the run had taken."""
    versions: Mapping[str, str]
    """Of the software that saved it."""

    @classmethod
    def of(cls, folder: Path) -> Checkpoint:
        """The one in a run folder.

        It holds pickled objects: whoever could write to the folder decides what reading it does. Raises InputError
        where there is none, or none that this software can go on with.
        """
        file = folder / CHECKPOINT
        if not file.is_file():
            raise InputError("has no checkpoint to go on from", file=folder, allowed="a run that was ended early")
        try:
            checkpoint = torch.load(file, weights_only=False)
        except (OSError, RuntimeError, EOFError, ImportError, AttributeError, pickle.UnpicklingError) as error:
            raise InputError(f"is no checkpoint that can be read: {error}", file=file) from error
        if not isinstance(checkpoint, cls):
            raise InputError("is no checkpoint", file=file)
        for package, version in environment()["versions"].items():
            if checkpoint.versions.get(package) != version:
                raise InputError(
                    f"was saved with {package} {checkpoint.versions.get(package)}, and here is {version}",
                    file=file,
                    allowed="the same versions, with which it goes on to the bit",
                )
        return checkpoint


class Checkpoints:
    """Saves a simulation into its run folder every `every` seconds of wall time, less often where saving takes long.

    `wall` tells the wall seconds that the run has taken; without `every` nothing is ever saved.
    """

    def __init__(self, engine: Engine, writer: RunWriter, wall: Callable[[], float], every: float | None) -> None:
        self._engine = engine
        self._writer = writer
        self._wall = wall
        self._every = every
        self._next = inf if every is None else wall() + every

    def save_if_due(self) -> None:
        """Save if the last time is long enough ago. Raises OSError where the folder cannot be written."""
        if self._wall() >= self._next:
            self.save()

    def save(self) -> None:
        """Save, between two events. Raises OSError where the folder cannot be written."""
        if self._every is None:
            return
        began = self._wall()
        self._writer.flush()
        checkpoint = Checkpoint(self._engine, self._writer.rows, began, environment()["versions"])
        with replacing(self._writer.folder / CHECKPOINT) as file:
            torch.save(checkpoint, file, pickle_protocol=pickle.HIGHEST_PROTOCOL)
        ended = self._wall()
        self._next = ended + max(self._every, (ended - began) / _MOST_TIME)

    def remove(self) -> None:
        """The run has ended, and nothing is left to go on with."""
        (self._writer.folder / CHECKPOINT).unlink(missing_ok=True)
