"""How long a node waits for others."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Timeouts:
    """For how many seconds a node waits before it goes on without somebody, or gives up."""

    start: float = 60.0
    """Until all are connected and ready."""
    handshake: float = 10.0
    """Until whoever has connected has proved who it is."""
    silence: float = 30.0
    """For a sign of life from a peer, and for a peer to take something of a message."""


DEFAULT_TIMEOUTS = Timeouts()
