"""The results of the steps so far, as one JSON file that is always complete; and goals for a GPU."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from dlion_sim import __version__
from dlion_sim.results.atomic import json_bytes, write

FORMAT = 1
Status = Literal["passed", "failed", "out of time", "running", "not run"]
Row = Mapping[str, Any]


@dataclass
class Step:
    """A step, with its results so far."""

    name: str
    about: str
    bound: float
    """Maximum seconds."""
    status: Status = "not run"
    seconds: float = 0.0
    message: str = ""
    """Why it did not pass."""
    log: list[str] = field(default_factory=list)
    """The last output of a step that did not pass."""
    rows: list[Row] = field(default_factory=list)
    """Its figures."""


@dataclass
class Record:
    """All steps, in a file that is replaced with every addition."""

    file: Path
    rehearsal: bool
    limit: float
    steps: list[Step]
    status: str = "running"
    """How it ended: completed, or cut off by what."""

    def __post_init__(self) -> None:
        self._began = time.monotonic()
        self._started = datetime.now(UTC).isoformat(timespec="seconds")

    @property
    def left(self) -> float:
        """Seconds until the limit."""
        return self.limit - self.seconds

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self._began

    def save(self) -> None:
        """Write the file. Raises OSError."""
        content = {
            "format": FORMAT,
            "dlion_sim": __version__,
            "rehearsal": self.rehearsal,
            "status": self.status,
            "started": self._started,
            "seconds": round(self.seconds, 2),
            "limit": self.limit,
            "steps": [vars(step) for step in self.steps],
        }
        write(self.file, json_bytes(content))


def read(file: Path) -> dict[str, Any]:
    """The content of a file; empty without one, and for a rehearsal, whose figures mean nothing."""
    if not file.exists():
        return {}
    content: dict[str, Any] = json.loads(file.read_text())
    return {} if content["rehearsal"] else content


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
