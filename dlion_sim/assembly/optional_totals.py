"""Sums over rows that only some runs have, for parts of the summary: packets, streams, and membership."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dlion_sim.results import ClassesRow, MembershipRow, MetricsRow, TransfersRow, final_metric

_ADAPTED = 0.9
"""The part of its final accuracy at which a class counts as recovered."""


@dataclass(slots=True)
class PacketTotals:
    """Sums over messages that were sent completely in packets."""

    bytes: int = 0
    lost: int = 0
    resent: int = 0
    saved: int = 0
    seconds: list[float] = field(default_factory=list)
    """The completion time of each data message."""

    def add(self, row: TransfersRow) -> None:
        if row.lost_bytes is None or row.completed is None:
            return
        self.bytes += row.bytes + (row.saved_bytes or 0)
        self.lost += row.lost_bytes
        self.resent += row.resent_bytes or 0
        self.saved += row.saved_bytes or 0
        if row.channel == "data":
            self.seconds.append(row.completed - row.begin)

    @property
    def summary(self) -> dict[str, Any] | None:
        """`Transported` in the summary; None without such messages."""
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


@dataclass(slots=True)
class StreamTotals:
    """Sums over rows of arrivals and classes, in the order of time."""

    scored: int = 0
    right: float = 0.0
    accuracies: dict[int, dict[int, list[float]]] = field(default_factory=dict)
    """By class and worker, at each evaluation since the class first arrived."""
    means: dict[int, dict[float, list[float]]] = field(default_factory=dict)
    """By class and time since then, those of all workers."""
    begin: float = math.inf
    """The time of the first evaluation."""

    def arrivals(self, row: MetricsRow) -> None:
        """Add online accuracy: samples were tested before training on them."""
        samples = row.batch_size or 0
        self.scored += samples
        self.right += (row.accuracy or 0.0) * samples

    def classes(self, row: ClassesRow) -> None:
        self.begin = min(self.begin, row.virtual_time)
        if row.share > 0 or row.label in self.accuracies:
            self.accuracies.setdefault(row.label, {}).setdefault(row.worker, []).append(row.accuracy)
            self.means.setdefault(row.label, {}).setdefault(row.virtual_time, []).append(row.accuracy)

    def summary(self, seconds: float) -> dict[str, Any] | None:
        """`Streamed` in the summary of a run of so many seconds; None without a stream."""
        if not self.accuracies and not self.scored:
            return None
        return {
            "scored": self.scored,
            "online_accuracy": self.right / self.scored if self.scored else None,
            "forgetting": self._forgetting(),
            "adaptation": {
                str(label): _adaptation(self.means[label], seconds)
                for label in sorted(self.means)
                if min(self.means[label]) > self.begin
            },
        }

    def _forgetting(self) -> float | None:
        lost = [
            max(former) - last for of_class in self.accuracies.values() for *former, last in of_class.values() if former
        ]
        return float(np.mean(lost)) if lost else None


def _adaptation(by_time: dict[float, list[float]], seconds: float) -> float | None:
    """Seconds from the first of these evaluations to the first that is nearly as good as those at the end."""
    means = [(time, float(np.mean(accuracies))) for time, accuracies in by_time.items()]
    final = final_metric(means, seconds)["mean"]
    return next((time - means[0][0] for time, mean in means if final and mean >= _ADAPTED * final), None)


class AvailabilityTotals:
    """Sums over rows of the membership of `workers`, in the order of time; at first, all are members."""

    def __init__(self, workers: Iterable[int]) -> None:
        self._members = set(workers)
        """Members."""
        self._since: dict[int, float] = dict.fromkeys(self._members, 0.0)
        """The start of each process that runs."""
        self._up: dict[int, float] = dict.fromkeys(self._members, 0.0)
        """Seconds that each was up until it last went down."""
        self.outages: dict[int, list[tuple[float, float]]] = {}
        """By participant, begin and end (s) of each time without its process; the end is infinite while it lasts."""
        self._detection_seconds: list[float] = []
        self._join_seconds: list[float] = []
        self._state_bytes = 0
        self._samples_lost, self._seconds_lost = 0, 0.0
        self._samples_before = 0
        """Samples of iterations before all state was lost."""
        self._is_used = False

    def add(self, row: MembershipRow, samples: int) -> None:
        """Add a row; `samples` is the total of all iterations until then."""
        self._is_used = True
        worker = row.participant
        self._add_outage(row)
        match row.what:
            case "down" | "left" if worker in self._since:
                self._up[worker] += row.virtual_time - self._since.pop(worker)
                self._members.discard(worker)
            case "up" if worker in self._up:
                self._since[worker] = row.virtual_time
            case "lost" if row.seconds is not None:
                self._detection_seconds.append(row.seconds)
            case "joined" | "begins_anew":
                if not self._members:
                    self._samples_before = samples
                self._members.add(worker)
                self._join_seconds.append(row.seconds or 0.0)
                self._state_bytes += row.bytes or 0
            case _:
                pass

    def _add_outage(self, row: MembershipRow) -> None:
        outages = self.outages.setdefault(row.participant, [])
        is_down = bool(outages) and math.isinf(outages[-1][1])
        if row.what in ("down", "left") and not is_down:
            outages.append((row.virtual_time, math.inf))
        elif row.what == "up" and is_down:
            outages[-1] = outages[-1][0], row.virtual_time

    def cut(self, samples: int, seconds: float) -> None:
        """An iteration was lost with its worker, after so many samples and seconds of computation."""
        self._samples_lost += samples
        self._seconds_lost += seconds

    def summary(self, samples: int, end: float) -> dict[str, Any] | None:
        """`Availability` in the summary of a run that ends at `end`; None without rows."""
        if not self._is_used:
            return None
        up = {worker: seconds + max(0.0, end - self._since.get(worker, end)) for worker, seconds in self._up.items()}
        return {
            "up": [min(1.0, seconds / end) if end else float(worker in self._since) for worker, seconds in up.items()],
            "computed": samples + self._samples_lost,
            "useful": samples - self._samples_before,
            "lost_seconds": self._seconds_lost,
            "state_bytes": self._state_bytes,
            "to_notice": _delays(self._detection_seconds),
            "to_join": _delays(self._join_seconds),
        }


def _delays(seconds: list[float]) -> dict[str, float | None]:
    if not seconds:
        return {"mean": None, "most": None}
    return {"mean": sum(seconds) / len(seconds), "most": max(seconds)}
