"""What was found on a link, beside what the scenario states."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from dlion_sim.scenario import BANDWIDTH, Unit
from dlion_sim.scenario.network import FULL_FRAME, SEGMENT

_DIGITS = 3


@dataclass(frozen=True)
class Measurement:
    """A bandwidth in bits per second or a round trip in seconds."""

    name: str
    stated: float
    found: float
    """Infinite where no answer came."""
    unit: Unit
    slack: float = 0.0
    """A difference that does not count."""
    payload: float | None = None
    """Of a bandwidth, what TCP delivered."""
    held_back: float = 0.0
    """Of a round trip, for how long nodes hold messages back: what the network itself does not delay."""

    @classmethod
    def of_payload(cls, name: str, stated: float, payload: float) -> Measurement:
        """A bandwidth counts whole frames, so it is more than what TCP delivered."""
        return cls(name, stated, payload * FULL_FRAME / SEGMENT, BANDWIDTH, payload=payload)

    @property
    def ratio(self) -> float:
        """Of what was found to what is stated."""
        return self.found / self.stated if self.stated else math.nan

    def is_off(self, tolerance: float) -> bool:
        """Whether it is by more than this part of what is stated."""
        return abs(self.found - self.stated) > max(tolerance * self.stated, self.slack)


def report(found: Sequence[Measurement], tolerance: float) -> RenderableType:
    """The table, and how many are off by more than `tolerance`, a part of what is stated."""
    table = Table(box=SIMPLE_HEAD)
    table.add_column("link")
    for heading in ("stated", "payload", "measured", "ratio"):
        table.add_column(heading, justify="right")
    table.add_column()
    for each in found:
        table.add_row(
            each.name,
            each.unit.format(each.stated),
            "" if each.payload is None else _text(each.payload, each.unit),
            _text(each.found, each.unit),
            "-" if not math.isfinite(each.ratio) else f"{each.ratio:.3f}",
            "off" if each.is_off(tolerance) else "",
        )
    off = sum(each.is_off(tolerance) for each in found)
    lines = [
        f"bandwidth: payload x {FULL_FRAME} / {SEGMENT}, since headers count, too",
        f"{off} of {len(found)} off by more than {100 * tolerance:g} %",
    ]
    if any(each.held_back for each in found):
        lines.insert(1, "round trip: ping, and for how long nodes hold messages back")
    return Group(table, *map(Text, lines))


def _text(value: float, unit: Unit) -> str:
    return unit.format(float(f"{value:.{_DIGITS}g}")) if math.isfinite(value) else "no answer"
