"""How workers did on samples that came while they learned, in sums for the summary."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dlion_sim.results import ClassesRow, MetricsRow, final_metric

_ADAPTED = 0.9
"""Of its final level: as good as that, the accuracy at a class has recovered."""


@dataclass(slots=True)
class Streamed:
    """Of the rows of arrivals and classes, which come forward in time."""

    scored: int = 0
    right: float = 0.0
    accuracies: dict[int, dict[int, list[float]]] = field(default_factory=dict)
    """By class and worker, at each evaluation since the class has come."""
    means: dict[int, dict[float, list[float]]] = field(default_factory=dict)
    """By class and time since then, of each worker."""
    begin: float = math.inf
    """The time of the first evaluation."""

    def arrivals(self, row: MetricsRow) -> None:
        """Samples were tested as they came."""
        samples = row.batch_size or 0
        self.scored += samples
        self.right += (row.accuracy or 0.0) * samples

    def classes(self, row: ClassesRow) -> None:
        """A class was evaluated by itself."""
        self.begin = min(self.begin, row.virtual_time)
        if row.share > 0 or row.label in self.accuracies:
            self.accuracies.setdefault(row.label, {}).setdefault(row.worker, []).append(row.accuracy)
            self.means.setdefault(row.label, {}).setdefault(row.virtual_time, []).append(row.accuracy)

    def told(self, seconds: float) -> dict[str, Any] | None:
        """As `Streamed` in the summary of a run of so many seconds; None without a stream."""
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
    """From the first of these evaluations to the first that is nearly as good as those at the end."""
    means = [(time, float(np.mean(accuracies))) for time, accuracies in by_time.items()]
    final = final_metric(means, seconds)["mean"]
    return next((time - means[0][0] for time, mean in means if final and mean >= _ADAPTED * final), None)
