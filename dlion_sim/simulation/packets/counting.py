"""What ports have counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dlion_sim.simulation.packets.memory import Memory
from dlion_sim.simulation.packets.state import CLASSES

COUNTERS = np.dtype(
    [
        *((name, np.int64, (CLASSES,)) for name in ("carried", "dropped", "marked")),
        *((name, np.int64) for name in ("packets", "queued", "most")),
        ("byte_seconds", np.float64),
    ]
)
"""Of a port: see `PacketNetwork.counters`."""


def counters(memory: Memory, now: float) -> npt.NDArray[Any]:
    """A record of `COUNTERS` of each port, up to now."""
    ports = memory["ports"][: memory.used("ports")]
    queues = memory["queues"][: memory.used("queues")].reshape(-1, CLASSES)
    counted = np.zeros(len(ports), COUNTERS)
    for field in ("carried", "dropped", "marked"):
        counted[field] = queues[field]
    for field in ("packets", "queued", "most"):
        counted[field] = ports[field]
    counted["byte_seconds"] = ports["byte_seconds"] + ports["queued"] * (now - ports["changed"])
    return counted
