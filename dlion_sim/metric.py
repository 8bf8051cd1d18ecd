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
        """The suffix of its name at an axis: its unit, or that lower is better."""
        return self.unit if self.higher_is_better else " (lower is better)"

    def written(self, value: float) -> str:
        """A formatted value: "91.2%" of an accuracy, "12.51" of another."""
        return f"{value:.1%}" if self == ACCURACY else f"{value:.4g}"

    @property
    def fields(self) -> dict[str, Any]:
        """Its entry in a manifest."""
        return asdict(self)

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> Metric:
        """The metric of the run with this manifest: accuracy, if an old one has none."""
        fields = manifest.get("metric", ACCURACY.fields)
        return cls(fields["name"], fields["higher_is_better"])


ACCURACY = Metric("accuracy", higher_is_better=True)
"""The share of right classifications, from 0 to 1. The only metric in percent."""
PERPLEXITY = Metric("perplexity", higher_is_better=False)
"""The number of equally likely tokens with the same uncertainty."""
RMSE = Metric("rmse", higher_is_better=False)
"""Root of the mean squared error."""
METRICS = {metric.name: metric for metric in (ACCURACY, PERPLEXITY, RMSE)}
"""Those of the tasks that are here, by name."""
