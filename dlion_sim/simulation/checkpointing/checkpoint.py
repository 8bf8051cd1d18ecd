"""The complete state of a simulation in a file, from which it goes on to the bit."""

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
from dlion_sim.results.run_folder import CHECKPOINT, SCENARIO, remove_checkpoint
from dlion_sim.scenario import Packets, to_data
from dlion_sim.simulation.checkpointing.decoding import Decoder
from dlion_sim.simulation.checkpointing.encoding import encode
from dlion_sim.simulation.checkpointing.file import Header, read_header, read_state, write
from dlion_sim.simulation.checkpointing.kinds import Kinds, UnknownKindError
from dlion_sim.simulation.engine import Engine

_MOST_TIME = 0.05
"""Part of the wall time that saving may take."""
_MOST_DIFFERENCES = 3
"""That a refusal tells."""
_LETTERS = 40
"""Of a value that it tells."""


@dataclass(frozen=True)
class Identity:
    """What a run is of. A checkpoint goes on with the same, and with nothing else."""

    scenario: dict[str, Any]
    """The resolved one, as plain data."""
    versions: dict[str, str]
    """Of the software, the source of the user's own code included."""
    arithmetic: dict[str, str]
    """What else decides the bits of what it computes, and whose kernels do."""
    kinds: Kinds
    """What its state is made of."""

    @classmethod
    def of(cls, setting: Setting) -> Identity:
        """Of a run with that setting, here and now."""
        return cls(
            scenario=to_data(setting.scenario.model_copy(update={"modules": None})),  # which sources tell better
            versions={**environment()["versions"], **setting.own_sources},
            arithmetic={**arithmetic(setting.device), "kernels": setting.kernels},
            kinds=Kinds(setting.system.own_modules, packets=isinstance(setting.scenario.network.model, Packets)),
        )


@dataclass(frozen=True)
class Checkpoint:
    """A simulation between two events."""

    engine: Engine
    rows: tuple[int, ...]
    """How many rows each table of the run folder had."""
    wall_seconds: float
    """That the run had taken."""

    @classmethod
    def of(cls, folder: Path, identity: Identity) -> Checkpoint:
        """The one in a run folder, which may come from anybody: nothing that it holds is executed.

        Raises InputError where there is none, one of something else than `identity`, or one that cannot be read.
        """
        file = folder / CHECKPOINT
        if not file.is_file():
            anew = f"dlion run {folder / SCENARIO} -o {folder} --force"
            allowed = f"a run that was ended early, after its first checkpoint; to begin anew: {anew}"
            raise InputError("has no checkpoint to go on from", file=folder, allowed=allowed)
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
        except Exception as error:  # Whatever somebody has put there.
            raise InputError(f"is no checkpoint that can be read: {error}", file=file) from error
        return cls(engine, header.rows, header.wall_seconds)


class Checkpoints:
    """Saves a simulation into its run folder every `every` seconds of wall time, less often where saving takes long.

    `wall` tells the wall seconds that the run has taken; without `every` nothing is ever saved.
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
        """Save if the last time is long enough ago. Raises as `save`."""
        if self._wall() >= self._next:
            self.save()

    def save(self) -> None:
        """Save, between two events.

        Raises OSError where the folder cannot be written, and InputError where a choice of the user's own keeps
        something that cannot be saved.
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

    def remove(self) -> None:
        """The run has ended, and nothing is left to go on with."""
        remove_checkpoint(self._writer.folder)


def _check(header: Header, identity: Identity, file: Path) -> None:
    """Raise InputError, which says what differs, unless a checkpoint is of the same."""
    _check_maker("versions", header.versions, identity.versions, file)
    if told := _told(header.scenario, identity.scenario, "{} was {} and is {}", ", "):
        allowed = f"the {SCENARIO} that it was saved with"
        raise InputError(f"was saved for another scenario: {told}", file=file, allowed=allowed)
    _check_maker("arithmetic", header.arithmetic, identity.arithmetic, file)


def _check_maker(what: str, was: Mapping[str, str], now: Mapping[str, str], file: Path) -> None:
    if told := _told(was, now, "{} {}, and here is {}", "; with "):
        allowed = f"the same {what}, with which it goes on to the bit"
        raise InputError(f"was saved with {told}", file=file, allowed=allowed)


def _told(was: Mapping[str, Any], now: Mapping[str, Any], words: str, between: str) -> str:
    """The first differences in `words` for a path, what was and what is; nothing where there are none."""
    differing = _differing(was, now)
    told = [words.format(path, *values) for path, values in list(differing.items())[:_MOST_DIFFERENCES]]
    more = len(differing) - len(told)
    return f"{between.join(told)}{f', and {more} more' if more else ''}"


def _differing(was: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """What plain data had and has now, by path."""
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
