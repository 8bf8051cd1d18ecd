"""What tells how good a model is at its task, and which way is better. A leaf: everything may import it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Metric:
    """A figure of an evaluation, e.g. accuracy or perplexity."""

    name: str
    higher_is_better: bool

    def reaches(self, value: float, target: float) -> bool:
        """Whether `value` is as good as `target` or better; NaN never is."""
        return value >= target if self.higher_is_better else value <= target

    def best(self, values: Iterable[float]) -> float:
        """The best of some values."""
        return max(values) if self.higher_is_better else min(values)

    @property
    def key(self) -> str:
        """The column of evaluations that holds it, and what its keys in a summary end with."""
        return "accuracy" if self == ACCURACY else "metric"

    @property
    def scale(self) -> float:
        """By what it is multiplied to be shown: accuracy is in percent."""
        return 100.0 if self == ACCURACY else 1.0

    @property
    def unit(self) -> str:
        """What follows its name in a heading."""
        return " (%)" if self == ACCURACY else ""

    @property
    def axis(self) -> str:
        """What follows its name at an axis: its unit, or that less of it is better."""
        return self.unit if self.higher_is_better else " (lower is better)"

    def written(self, value: float) -> str:
        """A value for the eye: "91.2%" of an accuracy, "12.51" of another."""
        return f"{value:.1%}" if self == ACCURACY else f"{value:.4g}"

    @property
    def told(self) -> dict[str, Any]:
        """As a manifest tells it."""
        return asdict(self)

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> Metric:
        """That of the run with this manifest; runs from before there was a choice don't say that it is accuracy."""
        told = manifest.get("metric", ACCURACY.told)
        return cls(told["name"], told["higher_is_better"])


ACCURACY = Metric("accuracy", higher_is_better=True)
"""The share that is classified right, from 0 to 1. It alone is shown in percent."""
PERPLEXITY = Metric("perplexity", higher_is_better=False)
"""Among how many tokens a model is as uncertain as if they were equally likely."""
RMSE = Metric("rmse", higher_is_better=False)
"""Root of the mean squared error."""
METRICS = {metric.name: metric for metric in (ACCURACY, PERPLEXITY, RMSE)}
"""Those of the tasks that are here, by name."""
