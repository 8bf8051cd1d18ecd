"""Who of the workers is there, in sums for the summary."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from dlion_sim.results import MembershipRow


class AvailabilityTotals:
    """Takes in the rows about `workers`' presence, in order; all of them are there at first."""

    def __init__(self, workers: Iterable[int]) -> None:
        self._members = set(workers)
        """Who has the state."""
        self._since: dict[int, float] = dict.fromkeys(self._members, 0.0)
        """When those came whose processes run."""
        self._up: dict[int, float] = dict.fromkeys(self._members, 0.0)
        """Seconds that each was there until it last went."""
        self.absences: dict[int, list[tuple[float, float]]] = {}
        """From when to when (s) each process did not run; infinite while it does not."""
        self._to_notice: list[float] = []
        self._to_join: list[float] = []
        self._state_bytes = 0
        self._samples_lost, self._seconds_lost = 0, 0.0
        self._samples_before = 0
        """Those of iterations from before all state was lost."""
        self._is_told = False

    def add(self, row: MembershipRow, samples: int) -> None:
        """Take in a row; so many samples all iterations had until then."""
        self._is_told = True
        worker = row.participant
        self._note_absence(row)
        match row.what:
            case "down" | "left" if worker in self._since:
                self._up[worker] += row.virtual_time - self._since.pop(worker)
                self._members.discard(worker)
            case "up" if worker in self._up:
                self._since[worker] = row.virtual_time
            case "lost" if row.seconds is not None:
                self._to_notice.append(row.seconds)
            case "joined" | "begins_anew":
                if not self._members:
                    self._samples_before = samples
                self._members.add(worker)
                self._to_join.append(row.seconds or 0.0)
                self._state_bytes += row.bytes or 0
            case _:
                pass

    def _note_absence(self, row: MembershipRow) -> None:
        absences = self.absences.setdefault(row.participant, [])
        is_away = bool(absences) and math.isinf(absences[-1][1])
        if row.what in ("down", "left") and not is_away:
            absences.append((row.virtual_time, math.inf))
        elif row.what == "up" and is_away:
            absences[-1] = absences[-1][0], row.virtual_time

    def cut(self, samples: int, seconds: float) -> None:
        """An iteration ends with its worker, for which it has computed so many samples and seconds."""
        self._samples_lost += samples
        self._seconds_lost += seconds

    def told(self, samples: int, end: float) -> dict[str, Any] | None:
        """As `Availability` in the summary, when a run ends; None if nobody came or went."""
        if not self._is_told:
            return None
        up = {worker: seconds + max(0.0, end - self._since.get(worker, end)) for worker, seconds in self._up.items()}
        return {
            "up": [min(1.0, seconds / end) if end else float(worker in self._since) for worker, seconds in up.items()],
            "computed": samples + self._samples_lost,
            "useful": samples - self._samples_before,
            "lost_seconds": self._seconds_lost,
            "state_bytes": self._state_bytes,
            "to_notice": _delays(self._to_notice),
            "to_join": _delays(self._to_join),
        }


def _delays(seconds: list[float]) -> dict[str, float | None]:
    """As `Delays` in the summary."""
    if not seconds:
        return {"mean": None, "most": None}
    return {"mean": sum(seconds) / len(seconds), "most": max(seconds)}
