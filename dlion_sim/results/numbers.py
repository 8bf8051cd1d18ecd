"""Numbers as people write them: thousands apart, no exponents, bytes and durations in a fitting unit."""

from __future__ import annotations

import math

from dlion_sim.metric import ACCURACY, Metric

_BYTES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))
_TIMES = ((86400.0, "d", 2), (3600.0, "h", 2), (60.0, "min", 2), (1.0, "s", 0))


def number(value: float, digits: int = 3) -> str:
    """A finite number with at least so many significant digits but no zeros at its end: "1,350", "12.5", "0.0123"."""
    if not value:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    written = f"{value:,.{decimals}f}"
    return written.rstrip("0").rstrip(".") if decimals else written


def percent(fraction: float) -> str:
    """E.g. "12.5 %" for 0.125."""
    return f"{number(100 * fraction)} %"


def of_metric(value: float, metric: Metric) -> str:
    """E.g. "90 %" of accuracy, "12.5" of another metric."""
    if metric == ACCURACY:
        return percent(value)
    return f"{value:.4g}"


def byte_unit(largest: float) -> tuple[float, str]:
    """The unit of sizes up to `largest` bytes: (bytes, name)."""
    # What would round to 1,000 of a unit is 1 of the next.
    return next((unit for unit in _BYTES if largest >= 0.9995 * unit[0]), _BYTES[-1])


def in_bytes(count: float) -> str:
    """E.g. "1.35 GB"."""
    size, name = byte_unit(count)
    return f"{number(count / size)} {name}"


def duration(seconds: float, digits: int = 3) -> str:
    """E.g. "45 s", "12.5 min" or "6 h": the largest unit of which there are at least two, down to seconds."""
    size, unit, _ = next(each for each in _TIMES if seconds >= each[2] * each[0])
    return f"{number(seconds / size, digits)} {unit}"
