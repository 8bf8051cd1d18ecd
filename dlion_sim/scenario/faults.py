"""Broken rules of a scenario, and pydantic's errors as the user's: the path as it was written, and what is allowed."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from dlion_sim.errors import InputError, did_you_mean
from dlion_sim.scenario.units import UnitError


class RuleError(ValueError):
    """A broken rule: the problem, what is allowed, and the place below the model that checks it (`at`, e.g. ("paths",
    3))."""

    def __init__(self, problem: str, *, allowed: str | None = None, at: tuple[str | int, ...] = ()) -> None:
        super().__init__(f"{problem}; allowed: {allowed}" if allowed else problem)
        self.problem = problem
        self.allowed = allowed
        self.at = at


class UnknownKeyError(RuleError):
    """A `key` that is unknown where it is written."""

    def __init__(self, key: str, problem: str, *, allowed: str) -> None:
        super().__init__(problem, allowed=allowed)
        self.key = key


@contextmanager
def below(*place: str | int) -> Iterator[None]:
    """Rules that are broken within the block are reported below that place."""
    try:
        yield
    except RuleError as error:
        raise RuleError(error.problem, allowed=error.allowed, at=(*place, *error.at)) from None


def listed(names: Collection[str], most: int = 12) -> str:
    """The names, comma separated; of a long list only the first ones and the count."""
    shown = ", ".join(list(names)[:most])
    return shown if len(names) <= most else f"{shown}, ... ({len(names)} in all)"


def no_such(what: str, name: str, names: Collection[str], at: tuple[str | int, ...]) -> RuleError:
    """The error for an unknown name of a cloud, worker or link."""
    return RuleError(
        f"there is no {what} '{name}'{did_you_mean(name, names)}",
        allowed=listed(names) or "none: there is one cloud",
        at=at,
    )


_A_MAPPING = "must be a mapping of keys to values, not {given}"
_MESSAGES = {
    "missing": "is required",
    "model_type": _A_MAPPING,
    "model_attributes_type": _A_MAPPING,
    "dict_type": _A_MAPPING,
    "invalid_key": "keys must be text",
    "list_type": "must be a list, not {given}",
    "string_type": "must be text, not {given}",
    "int_type": "must be a whole number, not {given}",
    "float_type": "must be a number, not {given}",
    "bool_type": "must be true or false, not {given}",
    "finite_number": "must be finite, not {given}",
    "greater_than": "must be more than {gt:g}, not {given}",
    "greater_than_equal": "must be {ge:g} or more, not {given}",
    "less_than": "must be less than {lt:g}, not {given}",
    "less_than_equal": "must be {le:g} or less, not {given}",
    "too_short": "must have {min_length} or more entries, not {actual_length}",
    "too_long": "must have {max_length} or fewer entries, not {actual_length}",
    "string_pattern_mismatch": "{given} may hold only letters, digits, '.', '_' and '-', and not begin with '.' or '-'",
    "literal_error": "{given} is unknown",
    "union_tag_invalid": "kind {tag} is unknown",
    "union_tag_not_found": "'kind' is required",
}


Elsewhere = Callable[[str, str], str]
"""Hint about where an unknown key belongs, from the key and the path of the part that has it."""


def as_input_error(
    error: ValidationError, data: object, file: str | Path | None, elsewhere: Elsewhere = lambda key, where: ""
) -> InputError:
    """The first fault of `data`, with all others as its `further`; `elsewhere` gives hints for unknown keys."""
    faults: dict[object, list[InputError]] = {}
    for line in error.errors(include_url=False):
        fault = _explained(line, data, file, elsewhere)
        cause = line.get("ctx", {}).get("error")
        same = cause.mistake if isinstance(cause, UnitError) and cause.mistake[1] else (fault.path, fault.problem)
        faults.setdefault(same, []).append(fault)
    return InputError.joined([*map(_once, faults.values())], most=len(faults))


def _once(same: Sequence[InputError]) -> InputError:
    """The first of several faults with one cause, with the number of other places."""
    first, more = same[0], len({fault.path for fault in same}) - 1  # "nic: 50 Mb" is wrong in both directions
    if not more:
        return first
    problem = f"{first.problem} (and at {more} more place{'s' * (more > 1)})"
    return InputError(problem, file=first.file, path=first.path, allowed=first.allowed)


def _explained(line: ErrorDetails, data: object, file: str | Path | None, elsewhere: Elsewhere) -> InputError:
    context = line.get("ctx", {})
    cause = context.get("error")
    place = cause.at if isinstance(cause, RuleError) else ()
    keys, given = _as_written(data, (*line["loc"], *place), is_missing=line["type"] == "missing")
    path = ".".join(str(key) for key in keys) or None
    if isinstance(cause, RuleError):
        there = elsewhere(cause.key, path or "") if isinstance(cause, UnknownKeyError) else ""
        return InputError(f"{cause.problem}{there}", file=file, path=path, allowed=cause.allowed)
    if cause is not None:
        return InputError(str(cause), file=file, path=path)
    words = _MESSAGES.get(line["type"])
    shown = {"given": _shown(given), "tag": _shown(context.get("tag"))}
    problem = words.format(**{**context, **shown}) if words else line["msg"]
    allowed = context.get("expected") or context.get("expected_tags")
    near = did_you_mean(context.get("tag", given), re.findall("'([^']+)'", allowed or ""))
    return InputError(f"{problem}{near}", file=file, path=path, allowed=allowed)


def _as_written(data: object, loc: Sequence[str | int], is_missing: bool) -> tuple[list[str | int], object]:
    """The keys of `loc` that the data has, and the value there.

    Pydantic's location also has steps that the user did not write: fields of expanded short forms, kinds of a union.
    The last step of a missing key is kept.
    """
    keys: list[str | int] = []
    for key in loc:
        entries = dict(enumerate(data)) if isinstance(data, list) else data
        if isinstance(entries, Mapping) and key in entries:
            data = entries[key]
            keys.append(key)
    return ([*keys, loc[-1]] if is_missing else keys), data


def _shown(given: object) -> str:
    if given is None:
        return "null"
    if isinstance(given, bool):
        return str(given).lower()
    if isinstance(given, Mapping):
        return "a mapping"
    if isinstance(given, list):
        return "a list"
    text = repr(given)
    return text if len(text) <= 60 else f"{text[:57]}..."
