"""The search space in YAML: values that may be chosen, by dotted path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from dlion_sim.scenario.faults import RuleError
from dlion_sim.scenario.model import Model
from dlion_sim.sweep.axes import Axis, OfLogRange, OfRange, Value, only_key, values_of

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution


class Interval(Model):
    """An interval of numbers."""

    first: float = Field(alias="from")
    """The lowest number."""
    last: float = Field(alias="to")
    """The highest number."""
    unit: str = ""
    """Unit of the numbers, e.g. Mbps."""

    @model_validator(mode="after")
    def _goes_up(self) -> Self:
        if self.last <= self.first:
            raise RuleError(f"the interval ends at {self.last:g}, not above its begin at {self.first:g}", at=("to",))
        return self

    def rounded(self, number: float) -> float:
        """The number to six significant digits, within the interval."""
        return min(max(float(f"{number:.6g}"), self.first), self.last)

    def value(self, number: float) -> Value:
        """A number with its unit. Whole ones stay floats, so they are refused for integer keys."""
        text = f"{number} {self.unit}".rstrip()
        return text, text if self.unit else number


class LogInterval(Interval):
    """An interval of numbers above zero."""

    first: Annotated[float, Field(gt=0)] = Field(alias="from")
    """The lowest number."""


class OfUniform(Model):
    """A uniform distribution: {uniform: {from: 0, to: 0.9}}."""

    uniform: Interval

    @property
    def interval(self) -> Interval:
        return self.uniform


class OfLogUniform(Model):
    """A log-uniform distribution: {log_uniform: {from: 0.01, to: 1}}."""

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
"""Values of one path: an interval, or the values of an axis."""


def distribution(dimension: Any) -> BaseDistribution:
    """Optuna's distribution: of numbers, of labels, or of indices into a range."""
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
    """The chosen value as it is stored."""
    return dimension.interval.rounded(chosen) if isinstance(dimension, OfUniform | OfLogUniform) else chosen


def value(dimension: Any, chosen: Any) -> Value:
    """Label and value of a choice from that distribution."""
    match dimension:
        case OfUniform() | OfLogUniform():
            interval: Interval = dimension.interval
            return interval.value(chosen)
        case OfRange() | OfLogRange():
            return values_of(dimension)[int(chosen)]
        case _:
            return chosen, dict(values_of(dimension))[chosen]


def extremes(dimension: Any) -> list[Value]:
    """The values to check: the ends of an interval, else all."""
    if isinstance(dimension, OfUniform | OfLogUniform):
        return [dimension.interval.value(dimension.interval.first), dimension.interval.value(dimension.interval.last)]
    return values_of(dimension)


def described(dimension: Any) -> str:
    """Description, e.g. "0.01 to 1, logarithmic"."""
    if not isinstance(dimension, OfUniform | OfLogUniform):
        return ", ".join(label for label, _ in values_of(dimension))
    interval = dimension.interval
    ends = f"{interval.first:g} to {interval.last:g} {interval.unit}".rstrip()
    return f"{ends}, logarithmic" if isinstance(dimension, OfLogUniform) else ends
