"""What came of the steps so far, as one JSON file that is whole at any time."""

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
    """One of the steps: what it is, and what is known of it."""

    name: str
    about: str
    bound: float
    """Seconds that it may take."""
    status: Status = "not run"
    seconds: float = 0.0
    message: str = ""
    """Why it is not passed."""
    log: list[str] = field(default_factory=list)
    """What was said last by a step that is not passed."""
    rows: list[Row] = field(default_factory=list)
    """Its figures."""


@dataclass
class Record:
    """All steps, in a file that is replaced whenever something is added."""

    file: Path
    rehearsal: bool
    limit: float
    steps: list[Step]
    status: str = "running"
    """How it ended: completed, or what cut it off."""

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
        """Bring all of it to the disk. Raises OSError."""
        told = {
            "format": FORMAT,
            "dlion_sim": __version__,
            "rehearsal": self.rehearsal,
            "status": self.status,
            "started": self._started,
            "seconds": round(self.seconds, 2),
            "limit": self.limit,
            "steps": [vars(step) for step in self.steps],
        }
        write(self.file, json_bytes(told))


def read(file: Path) -> dict[str, Any]:
    """What a file holds: nothing where there is none, and of a rehearsal, whose figures say nothing."""
    if not file.exists():
        return {}
    told: dict[str, Any] = json.loads(file.read_text())
    return {} if told["rehearsal"] else told
