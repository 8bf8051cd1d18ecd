"""Reading the JSON files of a run folder, which may come from anybody, with checks."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import msgspec

from dlion_sim.errors import InputError
from dlion_sim.files import read_bytes

MOST_BYTES = 32_000_000
_MOST_NESTED = 50
_TEXT = r"^[^\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]*\Z"
"""Text without control characters, which a terminal would obey."""
_DECIMAL = r"^-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?\Z"

ShortText = Annotated[str, msgspec.Meta(pattern=_TEXT, max_length=1000)]
"""Displayed text: names, and values of settings."""
TargetText = Annotated[str, msgspec.Meta(pattern=_DECIMAL, max_length=30)]
"""A target as a key."""
MOST = 1e15
"""The largest count or measurement; far beyond it, sums overflow."""
Number = msgspec.Meta(ge=0, le=int(MOST))
Seconds = Annotated[float, msgspec.Meta(ge=0.0, le=MOST)]
Measured = Annotated[float, msgspec.Meta(ge=-MOST, le=MOST)]
Fraction = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]


class JsonDocument(dict[str, Any]):
    """A file's content by key. Access to a missing key raises InputError, which names the file."""

    def __init__(self, content: dict[str, Any], file: Path) -> None:
        super().__init__(content)
        self._file = file

    def __missing__(self, key: str) -> Any:
        raise InputError("is required", file=self._file, path=key)


def read_json(file: Path, kind: Any) -> JsonDocument:
    """The mapping in a JSON file, checked against the TypedDict `kind`; further keys are allowed.

    Raises InputError if it cannot be read or does not match.
    """
    try:
        content = msgspec.json.decode(read_bytes(file, MOST_BYTES), type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", file=file) from None
    except RecursionError:
        raise InputError("is nested too deeply", file=file) from None
    check(content, kind, file)
    return JsonDocument(content, file)


def check(content: dict[str, Any], kind: Any, file: Path) -> None:
    """Raise InputError, with the place in the file, for plain data that does not match the TypedDict `kind`."""
    if _is_deep(content):
        raise InputError("is nested too deeply", file=file, allowed=f"{_MOST_NESTED} levels")
    try:
        msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).partition(" - at ")
        for pattern, words in ((_TEXT, "without control characters"), (_DECIMAL, "that is a number")):
            problem = problem.replace(f"matching regex {pattern!r}", words)
        path = place.rpartition("$")[2].replace("[...]", "").replace("[", ".").replace("]", "").strip(".`")
        raise InputError(problem[:1].lower() + problem[1:], file=file, path=path or None) from None


def _is_deep(content: dict[str, Any]) -> bool:
    """Whether it is nested too deeply for recursive functions."""
    level: list[Any] = [content]
    for _ in range(_MOST_NESTED):
        entries = chain.from_iterable(each.values() if isinstance(each, dict) else each for each in level)
        level = [entry for entry in entries if isinstance(entry, dict | list)]
    return bool(level)
