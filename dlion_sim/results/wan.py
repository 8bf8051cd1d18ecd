"""The WAN: what goes from one micro-cloud to another, whose bytes cost; other bytes stay inside a micro-cloud's LAN.

`wan_bytes` are those bytes, in summaries, tables and figures alike, and without headers and acknowledgements as all
counts of bytes are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from dlion_sim.results.names import clouds_of


def wan_path(manifest: Mapping[str, Any], sender: int, receiver: int) -> tuple[str, str] | None:
    """From which micro-cloud to which other one a link goes; None where it stays inside one."""
    clouds = clouds_of(manifest)
    path = clouds[sender], clouds[receiver]
    return None if path[0] == path[1] else path


def with_wan_bytes(links: pd.DataFrame) -> pd.DataFrame:
    """Rows of links, whose `wan_bytes` are their `bytes` where they cross to another micro-cloud, and 0 elsewhere."""
    crosses = links["sender_cloud"].astype(object) != links["receiver_cloud"].astype(object)
    return links.assign(wan_bytes=links["bytes"].where(crosses, 0))
