"""How long a node waits for others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from dlion_sim.scenario import Scenario


@dataclass(frozen=True)
class Timeouts:
    """For how many seconds a node waits before it goes on without somebody, or gives up."""

    start: float = 60.0
    """Until all are connected and ready."""
    handshake: float = 10.0
    """Until whoever has connected has proved who it is."""
    silence: float = 30.0
    """For a sign of life from a peer, and for a peer to take something of a message."""

    @classmethod
    def of(cls, scenario: Scenario, *, start: float = 60.0, silence: float | None = None) -> Self:
        """Those of a run, with the silence that its scenario says if none is given."""
        if silence is None:
            silence = scenario.availability.silence if scenario.availability else cls.silence
        return cls(start=start, silence=silence)


DEFAULT_TIMEOUTS = Timeouts()
