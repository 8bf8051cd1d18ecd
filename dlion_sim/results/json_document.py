"""What the JSON files of a run folder tell, checked: they may come from anybody."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import msgspec

from dlion_sim.errors import InputError
from dlion_sim.files import read_bytes

MOST_BYTES = 32_000_000
_MOST_NESTED = 50
_TEXT = r"^[^\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]*\Z"
"""What a terminal would obey instead of showing it is not in there."""
_DECIMAL = r"^-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?\Z"

ShortText = Annotated[str, msgspec.Meta(pattern=_TEXT, max_length=1000)]
"""What is shown: names, and values of settings."""
TargetText = Annotated[str, msgspec.Meta(pattern=_DECIMAL, max_length=30)]
"""A target as a key."""
MOST = 1e15
"""Of whatever is counted or measured; far beyond it, sums overflow."""
Number = msgspec.Meta(ge=0, le=int(MOST))
Seconds = Annotated[float, msgspec.Meta(ge=0.0, le=MOST)]
Measured = Annotated[float, msgspec.Meta(ge=-MOST, le=MOST)]
Fraction = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]


class JsonDocument(dict[str, Any]):
    """What a file tells, by key. Raises InputError, which names the file, where a key that is asked for is missing."""

    def __init__(self, told: dict[str, Any], file: Path) -> None:
        super().__init__(told)
        self._file = file

    def __missing__(self, key: str) -> Any:
        raise InputError("is required", file=self._file, path=key)


def read_json(file: Path, kind: Any) -> JsonDocument:
    """The mapping in a JSON file, of a TypedDict's `kind` as far as that describes it; other keys are left as they are.

    Raises InputError where it cannot be read or is no such thing.
    """
    try:
        told = msgspec.json.decode(read_bytes(file, MOST_BYTES), type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", file=file) from None
    except RecursionError:
        raise InputError("is nested too deeply", file=file) from None
    check(told, kind, file)
    return JsonDocument(told, file)


def check(told: dict[str, Any], kind: Any, file: Path) -> None:
    """Raise InputError, which says where in the file, for plain data that is not of a TypedDict's `kind`."""
    if _is_deep(told):
        raise InputError("is nested too deeply", file=file, allowed=f"{_MOST_NESTED} levels")
    try:
        msgspec.convert(told, kind)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).partition(" - at ")
        for pattern, words in ((_TEXT, "without control characters"), (_DECIMAL, "that is a number")):
            problem = problem.replace(f"matching regex {pattern!r}", words)
        path = place.rpartition("$")[2].replace("[...]", "").replace("[", ".").replace("]", "").strip(".`")
        raise InputError(problem[:1].lower() + problem[1:], file=file, path=path or None) from None


def _is_deep(told: Any) -> bool:
    """Whether it is nested too deeply to be worked with."""
    level = [told]
    for _ in range(_MOST_NESTED):
        level = [inner for outer in level for inner in _inside(outer) if isinstance(inner, dict | list)]
    return bool(level)


def _inside(outer: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return outer.values() if isinstance(outer, dict) else outer
