"""What became of messages that were sent in packets, in sums for the summary."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dlion_sim.results import TransfersRow


@dataclass(slots=True)
class PacketLosses:
    """Of all such messages that were sent to their ends."""

    bytes: int = 0
    lost: int = 0
    resent: int = 0
    saved: int = 0
    seconds: list[float] = field(default_factory=list)
    """That each data message took to its completion."""

    def add(self, row: TransfersRow) -> None:
        """Count a message, unless it was not sent in packets or not to its end."""
        if row.lost_bytes is None or row.completed is None:
            return
        self.bytes += row.bytes + (row.saved_bytes or 0)
        self.lost += row.lost_bytes
        self.resent += row.resent_bytes or 0
        self.saved += row.saved_bytes or 0
        if row.channel == "data":
            self.seconds.append(row.completed - row.begin)

    @property
    def told(self) -> dict[str, Any] | None:
        """As `Transported` in the summary; None without any."""
        if not self.bytes:
            return None
        shares = {"lost": self.lost, "resent": self.resent, "saved": self.saved}
        mean, p50, p99 = _statistics(self.seconds)
        return {
            **{name: counted / self.bytes for name, counted in shares.items()},
            "messages": len(self.seconds),
            "completion": {"mean": mean, "p50": p50, "p99": p99},
        }


def _statistics(seconds: list[float]) -> tuple[float | None, float | None, float | None]:
    if not seconds:
        return None, None, None
    p50, p99 = np.percentile(seconds, [50, 99])
    return float(np.mean(seconds)), float(p50), float(p99)
