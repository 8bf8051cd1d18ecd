"""Checkpoints: the complete state of a simulation in a file, which resumes to the bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from dlion_sim.assembly import Setting
from dlion_sim.errors import InputError
from dlion_sim.learning.arithmetic import arithmetic
from dlion_sim.results import RunWriter, environment
from dlion_sim.results.atomic import replacing
from dlion_sim.results.run_folder import CHECKPOINT, SCENARIO
from dlion_sim.scenario import to_data
from dlion_sim.simulation.checkpointing.decoding import Decoder
from dlion_sim.simulation.checkpointing.encoding import encode
from dlion_sim.simulation.checkpointing.file import Header, read_header, read_state, write
from dlion_sim.simulation.checkpointing.kinds import Kinds, UnknownKindError
from dlion_sim.simulation.engine import Engine

_MOST_TIME = 0.05
"""The largest part of the wall time for saving."""
_MOST_DIFFERENCES = 3
"""The most differences in an error message."""
_LETTERS = 40
"""The most letters of a value in it."""


@dataclass(frozen=True)
class Identity:
    """The identity of a run: a checkpoint can only be resumed with the same one."""

    scenario: dict[str, Any]
    """The resolved scenario, as plain data."""
    versions: dict[str, str]
    """Versions of the software, with digests of the user's own code."""
    arithmetic: dict[str, str]
    """Further properties that determine results to the bit, with the kernels."""
    kinds: Kinds
    """The classes of its state."""

    @classmethod
    def of(cls, setting: Setting) -> Identity:
        return cls(
            scenario=to_data(setting.scenario.model_copy(update={"modules": None})),  # as sources identify it better
            versions={**environment()["versions"], **setting.own_sources},
            arithmetic={**arithmetic(setting.device), "kernels": setting.kernels},
            kinds=Kinds(setting.system.own_modules),
        )


@dataclass(frozen=True)
class Checkpoint:
    """A simulation between two events."""

    engine: Engine
    rows: tuple[int, ...]
    """The number of rows of each table of the run folder."""
    wall_seconds: float
    """Wall time of the run until then."""

    @classmethod
    def of(cls, folder: Path, identity: Identity) -> Checkpoint:
        """The checkpoint in a run folder. It is not trusted: nothing that it holds is executed.

        Raises InputError if there is none, if it is not of `identity`, or if it cannot be read.
        """
        file = folder / CHECKPOINT
        if not file.is_file():
            allowed = f"a run that was ended early, after its first checkpoint; `run` {folder / SCENARIO} begins anew"
            raise InputError("has no checkpoint to resume from", file=folder, allowed=allowed)
        try:
            with file.open("rb") as stream:
                header = read_header(stream)
                _check(header, identity, file)
                state, blocks = read_state(stream, header)
            engine = Decoder(identity.kinds, blocks).decode(state)
            if not isinstance(engine, Engine):
                raise ValueError(f"it holds a {type(engine).__name__}")
        except InputError:
            raise
        except Exception as error:  # An untrusted file may cause any.
            raise InputError(f"is no checkpoint that can be read: {error}", file=file) from error
        return cls(engine, header.rows, header.wall_seconds)


class Checkpoints:
    """Saves a simulation into its run folder every `every` seconds of wall time, less often where saving takes long.

    `wall` returns the wall seconds of the run; without `every` nothing is saved.
    """

    def __init__(
        self, engine: Engine, writer: RunWriter, identity: Identity, wall: Callable[[], float], every: float | None
    ) -> None:
        self._engine = engine
        self._writer = writer
        self._identity = identity
        self._wall = wall
        self._every = every
        self._next = inf if every is None else wall() + every

    def save_if_due(self) -> None:
        if self._wall() >= self._next:
            self.save()

    def save(self) -> None:
        """Save, between two events.

        Raises OSError if the folder cannot be written, and InputError if a choice of the user's own has a state that
        cannot be saved.
        """
        if self._every is None:
            return
        began = self._wall()
        self._writer.flush()
        try:
            state, blocks = encode(self._engine, self._identity.kinds)
        except UnknownKindError as error:
            raise InputError(
                f"keeps {error}, which a checkpoint cannot",
                path="system",
                allowed="numbers, texts, collections, arrays, tensors, random streams, and objects of classes of the "
                "same file; or a run without checkpoints",
            ) from None
        header = Header(
            versions=self._identity.versions,
            arithmetic=self._identity.arithmetic,
            scenario=self._identity.scenario,
            rows=self._writer.rows,
            wall_seconds=began,
            state=len(state),
            blocks=tuple(block.nbytes for block in blocks),
        )
        with replacing(self._writer.folder / CHECKPOINT) as file:
            write(file, header, state, blocks)
        ended = self._wall()
        self._next = ended + max(self._every, (ended - began) / _MOST_TIME)


def _check(header: Header, identity: Identity, file: Path) -> None:
    """Raise InputError, with the differences, unless a checkpoint is of that identity."""
    _check_software("versions", header.versions, identity.versions, file)
    if differences := _differences(header.scenario, identity.scenario, "{} was {} and is {}", ", "):
        allowed = f"the {SCENARIO} that it was saved with"
        raise InputError(f"was saved for another scenario: {differences}", file=file, allowed=allowed)
    _check_software("arithmetic", header.arithmetic, identity.arithmetic, file)


def _check_software(what: str, was: Mapping[str, str], now: Mapping[str, str], file: Path) -> None:
    if differences := _differences(was, now, "{} {}, and here is {}", "; with "):
        allowed = f"the same {what}, with which it resumes to the bit"
        raise InputError(f"was saved with {differences}", file=file, allowed=allowed)


def _differences(was: Mapping[str, Any], now: Mapping[str, Any], words: str, between: str) -> str:
    """The first differences, each formatted by `words` with path, former and present value; empty if there are none."""
    differing = _differing(was, now)
    shown = [words.format(path, *values) for path, values in list(differing.items())[:_MOST_DIFFERENCES]]
    more = len(differing) - len(shown)
    return f"{between.join(shown)}{f', and {more} more' if more else ''}"


def _differing(was: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """By path, the former and present values of plain data that differ."""
    before, after = dict(_leaves("", was)), dict(_leaves("", now))
    return {
        path: (_shown(before.get(path)), _shown(after.get(path)))
        for path in {**before, **after}
        if before.get(path) != after.get(path)
    }


def _leaves(path: str, data: Any) -> Iterator[tuple[str, Any]]:
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    if not items:
        yield path, data
    for key, value in items:
        yield from _leaves(f"{path}.{key}" if path else str(key), value)


def _shown(value: object) -> str:
    text = "absent" if value is None else str(value)
    text = text if text.isprintable() else repr(text)
    return text if len(text) <= _LETTERS else f"{text[: _LETTERS - 3]}..."
