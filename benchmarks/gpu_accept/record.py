"""The results of the steps so far, as one JSON file that is always complete."""

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
