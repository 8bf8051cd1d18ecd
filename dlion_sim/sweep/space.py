"""The space of a search: by dotted path the values that may be chosen, as YAML says them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from dlion_sim.scenario.faults import RuleError
from dlion_sim.scenario.model import Model
from dlion_sim.sweep.axes import Axis, OfLogRange, OfRange, Value, only_key, values_of

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution


class Interval(Model):
    """All numbers from one to another."""

    first: float = Field(alias="from")
    """The lowest number."""
    last: float = Field(alias="to")
    """The highest number."""
    unit: str = ""
    """Written after each number, e.g. Mbps."""

    @model_validator(mode="after")
    def _goes_up(self) -> Self:
        if self.last <= self.first:
            raise RuleError(f"the interval ends at {self.last:g}, not above its begin at {self.first:g}", at=("to",))
        return self

    def rounded(self, number: float) -> float:
        """To six significant digits, which is what a run is told, but not beyond the ends."""
        return min(max(float(f"{number:.6g}"), self.first), self.last)

    def value(self, number: float) -> Value:
        """A number with its unit. It stays a float if it is a whole one, so that it fits no key for whole numbers."""
        text = f"{number} {self.unit}".rstrip()
        return text, text if self.unit else number


class LogInterval(Interval):
    """All numbers from one to another, both above zero."""

    first: Annotated[float, Field(gt=0)] = Field(alias="from")
    """The lowest number."""


class OfUniform(Model):
    """Any number, each as likely: {uniform: {from: 0, to: 0.9}}."""

    uniform: Interval

    @property
    def interval(self) -> Interval:
        return self.uniform


class OfLogUniform(Model):
    """Any number, each magnitude as likely: {log_uniform: {from: 0.01, to: 1}}."""

    log_uniform: LogInterval

    @property
    def interval(self) -> Interval:
        return self.log_uniform


def _kind(given: object) -> str:
    key = only_key(given)
    return key if key in ("uniform", "log_uniform") else "finite"


def _check_finite(axis: Any) -> Any:
    # One value is likely a misspelt kind, which reads as a label.
    if len(values_of(axis)) < 2:
        raise RuleError(
            "there must be two values or more to choose from",
            allowed="{uniform: ...}, {log_uniform: ...}, {range: ...}, {log_range: ...}, [...], {label: value, ...}",
        )
    return axis


Dimension = Annotated[
    Annotated[OfUniform, Tag("uniform")]
    | Annotated[OfLogUniform, Tag("log_uniform")]
    | Annotated[Axis, AfterValidator(_check_finite), Tag("finite")],
    Discriminator(_kind),
]
"""What one path may be set to: any number of an interval, or one of the values that an axis may have."""


def distribution(dimension: Any) -> BaseDistribution:
    """Optuna's distribution of what it chooses: a number, a label, or of a range the place in it."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    match dimension:
        case OfUniform() | OfLogUniform():
            interval = dimension.interval
            return FloatDistribution(interval.first, interval.last, log=isinstance(dimension, OfLogUniform))
        case OfRange() | OfLogRange():
            return IntDistribution(0, len(dimension.values) - 1)
        case _:
            return CategoricalDistribution([label for label, _ in values_of(dimension)])


def rounded(dimension: Any, chosen: Any) -> Any:
    """What was chosen, as the search keeps it."""
    return dimension.interval.rounded(chosen) if isinstance(dimension, OfUniform | OfLogUniform) else chosen


def value(dimension: Any, chosen: Any) -> Value:
    """What the choice of that distribution is called, and what it sets."""
    match dimension:
        case OfUniform() | OfLogUniform():
            interval: Interval = dimension.interval
            return interval.value(chosen)
        case OfRange() | OfLogRange():
            return values_of(dimension)[int(chosen)]
        case _:
            return chosen, dict(values_of(dimension))[chosen]


def extremes(dimension: Any) -> list[Value]:
    """The values that tell whether the path can be set to such: the ends of an interval, else all."""
    if isinstance(dimension, OfUniform | OfLogUniform):
        return [dimension.interval.value(dimension.interval.first), dimension.interval.value(dimension.interval.last)]
    return values_of(dimension)


def described(dimension: Any) -> str:
    """For a reader, e.g. "0.01 to 1, logarithmic"."""
    if not isinstance(dimension, OfUniform | OfLogUniform):
        return ", ".join(label for label, _ in values_of(dimension))
    interval = dimension.interval
    ends = f"{interval.first:g} to {interval.last:g} {interval.unit}".rstrip()
    return f"{ends}, logarithmic" if isinstance(dimension, OfLogUniform) else ends
