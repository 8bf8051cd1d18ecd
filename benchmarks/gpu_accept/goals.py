"""Goals for a GPU, compared with measured figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

NOT_MEASURED = "not measured"
_FUSED = (("mlp", 64, 10.0), ("cipher", 64, 5.0))
"""Model, workers, and the speed-up over one by one."""
_BUSY = ("cipher", 16, 0.6)


@dataclass(frozen=True)
class Goal:
    """A figure and its required minimum."""

    what: str
    wanted: str
    least: float
    value: float | None
    figure: str
    """The figure as text."""

    @property
    def outcome(self) -> str:
        """Whether the goal is reached."""
        if self.value is None:
            return NOT_MEASURED
        return "reached" if self.value >= self.least else "missed"


def rows_of(results: Mapping[str, Any], step: str) -> list[dict[str, Any]]:
    """The figures of a step; none if it was not run."""
    return next((each["rows"] for each in results.get("steps", ()) if each["name"] == step), [])


def times_fused(row: Mapping[str, Any]) -> float | None:
    """The speed-up over one by one; None if one of them is missing."""
    one_by_one, fused = row.get("one_by_one"), row.get("fused")
    return fused / one_by_one if one_by_one and fused else None


def goals(results: Mapping[str, Any]) -> list[Goal]:
    """All goals, with the content of a file of results."""
    found = []
    rates = {(row["model"], row["workers"]): times_fused(row) for row in rows_of(results, "rates")}
    for model, workers, least in _FUSED:
        times = rates.get((model, workers))
        figure = NOT_MEASURED if times is None else f"{times:.1f} times"
        what = f"fused gradients, {model}, {workers} workers"
        found.append(Goal(what, f"{least:g} times one by one", least, times, figure))
    model, workers, least = _BUSY
    shares = {(row["what"], row["model"], row["workers"]): row["busy"] for row in rows_of(results, "busy")}
    share = shares.get(("simulation", model, workers))
    figure = NOT_MEASURED if share is None else f"{share:.0%} of the time"
    found.append(
        Goal(f"busy, simulation, {model}, {workers} workers", f"{least:.0%} of the time", least, share, figure)
    )
    return found
