"""Fewer candidates and seeds, so that a study fits into some wall time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from dlion_sim.recommend.candidates import Candidate
from dlion_sim.recommend.race import FINALISTS
from dlion_sim.results.atomic import json_bytes, write
from dlion_sim.results.numbers import duration

FILE = "effort.json"
_LEAST = 2
"""Minimum number of candidates."""
_MOST_NAMED = 4


class Effort(msgspec.Struct, frozen=True):
    """What a study does within some wall time."""

    seconds: float
    """The wall time."""
    seeds: int
    of_seeds: int
    """The seeds that were asked for."""
    candidates: list[str]
    """Names of the candidates that remain."""
    left_out: list[str]
    summary: str


def fitted(candidates: Sequence[Candidate], seeds: int, changes: int, per_run: float, seconds: float) -> Effort:
    """The candidates and seeds that fit, given the wall time of a candidate's run; `changes` of the winner are extra.

    Seeds are reduced before more than half of the candidates are left out.
    """
    room = seconds / per_run - changes
    fewer = next((each for each in range(seeds, 1, -1) if room - _extra(each) >= len(candidates) / 2), 1)
    count = max(min(_LEAST, len(candidates)), min(len(candidates), int(room - _extra(fewer))))
    first = {each.name for each in _by_importance(candidates)[:count]}
    left_out = [each for each in candidates if each.name not in first]
    takes = per_run * (count + _extra(fewer) + changes)
    summary = f"effort {duration(seconds)}: {count} of {len(candidates)} candidates, {fewer} of {seeds} seeds, "
    summary += f"estimated to take up to {duration(takes)}"
    tried = {each.labels["system"] for each in candidates if each.name in first}
    if untried := sorted({each.labels["system"] for each in left_out} - tried):
        summary += f"; systems not tried at all: {', '.join(untried)}"
    if left_out:
        more = len(left_out) - _MOST_NAMED
        summary += f"; left out: {'; '.join(each.in_words for each in left_out[:_MOST_NAMED])}"
        summary += f"; and {more} more" if more > 0 else ""
    kept = [each.name for each in candidates if each.name in first]
    return Effort(seconds, fewer, seeds, kept, [each.name for each in left_out], summary)


def read_effort(folder: Path, candidates: Sequence[Candidate], seeds: int, seconds: float) -> Effort | None:
    """What was chosen of the same for this wall time when the study in a folder began; else None."""
    try:
        found = msgspec.json.decode((folder / FILE).read_bytes(), type=Effort)
    except (OSError, msgspec.MsgspecError):
        return None
    is_same = (found.seconds, found.of_seeds) == (seconds, seeds) and {*found.candidates, *found.left_out} == {
        each.name for each in candidates
    }
    return found if is_same else None


def write_effort(folder: Path, effort: Effort) -> None:
    """Write it, so that the study continues with the same choice."""
    write(folder / FILE, json_bytes(msgspec.to_builtins(effort)))


def _extra(seeds: int) -> int:
    """The finalists' runs with other seeds."""
    return FINALISTS * (seeds - 1)


def _by_importance(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Every system with the first value of all else comes first, then one further value."""
    seen: dict[tuple[str, str], list[str]] = {}

    def others(candidate: Candidate) -> int:
        places = 0
        for key, value in candidate.labels.items():
            if key != "system":
                values = seen.setdefault((candidate.labels["system"], key), [])
                values.extend([value] if value not in values else [])
                places += values.index(value)
        return places

    return sorted(candidates, key=others)
