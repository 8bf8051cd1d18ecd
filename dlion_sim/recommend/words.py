"""Quantities in reasons and tables, in words."""

from __future__ import annotations

from dlion_sim.results.numbers import number

_UNITS = ((86400.0, "d", 2), (3600.0, "h", 2), (60.0, "min", 2), (1.0, "s", 0))


def duration(seconds: float) -> str:
    """E.g. "45 s", "12.5 min" or "6 h": the largest unit of which there are at least two, down to seconds."""
    size, unit, _ = next(each for each in _UNITS if seconds >= each[2] * each[0])
    return f"{number(seconds / size)} {unit}"
