"""Quantities in reasons and tables, in words."""

from __future__ import annotations

from dlion_sim.results.numbers import number

_ALIKE = 0.0005
"""Of a value: what differs by less is written as the same."""
_UNITS = ((86400.0, "d", 2), (3600.0, "h", 2), (60.0, "min", 2), (1.0, "s", 0))


def duration(seconds: float) -> str:
    """E.g. "45 s", "12.5 min" or "6 h": the largest unit of which there are at least two, down to seconds."""
    size, unit, _ = next(each for each in _UNITS if seconds >= each[2] * each[0])
    return f"{number(seconds / size)} {unit}"


def compared(value: float, other: float, more: str, less: str) -> str:
    """How much more than another a value is, e.g. "12 % dearer", "as dear", "4.5 % cheaper"; "dearer" than nothing."""
    difference = value - other
    if abs(difference) <= _ALIKE * other:
        return f"as {more.removesuffix('er')}"
    part = f"{number(100 * abs(difference) / other, 2)} % " if other else ""
    return f"{part}{more if difference > 0 else less}"
