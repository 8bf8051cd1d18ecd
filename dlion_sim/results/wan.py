"""WAN bytes: those between micro-clouds, which cost; other bytes stay inside a micro-cloud's LAN.

Like all counts of bytes, `wan_bytes` are without headers and acknowledgements.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd

from dlion_sim.results.names import clouds_of

if TYPE_CHECKING:
    from dlion_sim.results.reading import Run


def wan_path(manifest: Mapping[str, Any], sender: int, receiver: int) -> tuple[str, str] | None:
    """The two micro-clouds of a link, from and to; None for a link inside one."""
    clouds = clouds_of(manifest)
    path = clouds[sender], clouds[receiver]
    return None if path[0] == path[1] else path


def with_wan_bytes(links: pd.DataFrame) -> pd.DataFrame:
    """Rows of links with `wan_bytes`: their `bytes` between micro-clouds, 0 elsewhere."""
    crosses = links["sender_cloud"].astype(object) != links["receiver_cloud"].astype(object)
    return links.assign(wan_bytes=links["bytes"].where(crosses, 0))


@dataclass(frozen=True)
class Traffic:
    """The bytes by which runs are compared: their columns and their name."""

    name: Literal["WAN", "LAN"]
    links: Literal["wan_bytes", "bytes"]
    """Their column of links."""
    total: Literal["wan_bytes", "bytes_sent"]
    """Their key of summaries, and their column of comparisons."""

    @property
    def title(self) -> str:
        """Of an axis."""
        return f"Sent over the {self.name} by all workers"

    @property
    def to_target(self) -> str:
        """Their column of comparisons, sent until the target was reached."""
        return f"{self.total}_to_target"


WAN, LAN = Traffic("WAN", "wan_bytes", "wan_bytes"), Traffic("LAN", "bytes", "bytes_sent")


def traffic_of(runs: Iterable[Run]) -> Traffic:
    """Bytes over the WAN, or over the LAN if no run has more than one micro-cloud."""
    return WAN if any(run.has_wan for run in runs) else LAN
