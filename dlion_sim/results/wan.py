"""The WAN: what goes from one micro-cloud to another, whose bytes cost; other bytes stay inside a micro-cloud's LAN.

`wan_bytes` are those bytes, in summaries, tables and figures alike, and without headers and acknowledgements as all
counts of bytes are.
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
    """From which micro-cloud to which other one a link goes; None where it stays inside one."""
    clouds = clouds_of(manifest)
    path = clouds[sender], clouds[receiver]
    return None if path[0] == path[1] else path


def with_wan_bytes(links: pd.DataFrame) -> pd.DataFrame:
    """Rows of links, whose `wan_bytes` are their `bytes` where they cross to another micro-cloud, and 0 elsewhere."""
    crosses = links["sender_cloud"].astype(object) != links["receiver_cloud"].astype(object)
    return links.assign(wan_bytes=links["bytes"].where(crosses, 0))


@dataclass(frozen=True)
class Traffic:
    """Bytes that runs are compared by: in which columns they are, and what to call them."""

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
        """Their column of comparisons, as far as they were sent until the target was reached."""
        return f"{self.total}_to_target"


WAN, LAN = Traffic("WAN", "wan_bytes", "wan_bytes"), Traffic("LAN", "bytes", "bytes_sent")


def traffic_of(runs: Iterable[Run]) -> Traffic:
    """What to compare runs by: bytes over the WAN, or over the LAN where none of them has more than one micro-cloud."""
    return WAN if any(run.has_wan for run in runs) else LAN
