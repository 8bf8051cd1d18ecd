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
        return cls(**manifest["metric"]) if "metric" in manifest else ACCURACY


ACCURACY = Metric("accuracy", higher_is_better=True)
"""The share that is classified right, from 0 to 1. It alone is shown in percent."""
