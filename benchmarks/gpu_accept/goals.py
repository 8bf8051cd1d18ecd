"""What a GPU is to bring at least, held against what was measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

NOT_MEASURED = "not measured"
_FUSED = (("mlp", 64, 10.0), ("cipher", 64, 5.0))
"""Model, workers, and how many times as fast as one by one."""
_BUSY = ("cipher", 16, 0.6)


@dataclass(frozen=True)
class Goal:
    """A figure, and what it is to be at least."""

    what: str
    wanted: str
    least: float
    value: float | None
    told: str
    """The figure in words."""

    @property
    def outcome(self) -> str:
        """Whether it is reached."""
        if self.value is None:
            return NOT_MEASURED
        return "reached" if self.value >= self.least else "missed"


def rows_of(told: Mapping[str, Any], step: str) -> list[dict[str, Any]]:
    """The figures of a step; none where it was not run."""
    return next((each["rows"] for each in told.get("steps", ()) if each["name"] == step), [])


def times_fused(row: Mapping[str, Any]) -> float | None:
    """How many times as fast as one by one; None where one of both is missing."""
    one_by_one, fused = row.get("one_by_one"), row.get("fused")
    return fused / one_by_one if one_by_one and fused else None


def goals(told: Mapping[str, Any]) -> list[Goal]:
    """All of them, by what a file of results holds."""
    found = []
    rates = {(row["model"], row["workers"]): times_fused(row) for row in rows_of(told, "rates")}
    for model, workers, least in _FUSED:
        times = rates.get((model, workers))
        figure = NOT_MEASURED if times is None else f"{times:.1f} times"
        what = f"fused gradients, {model}, {workers} workers"
        found.append(Goal(what, f"{least:g} times one by one", least, times, figure))
    model, workers, least = _BUSY
    shares = {(row["what"], row["model"], row["workers"]): row["busy"] for row in rows_of(told, "busy")}
    share = shares.get(("simulation", model, workers))
    figure = NOT_MEASURED if share is None else f"{share:.0%} of the time"
    found.append(
        Goal(f"busy, simulation, {model}, {workers} workers", f"{least:.0%} of the time", least, share, figure)
    )
    return found
