"""The axes of a sweep in YAML: a list, labelled values, a range or a logarithmic range."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from dlion_sim.scenario.faults import RuleError
from dlion_sim.scenario.model import Model

Value = tuple[str, Any]
"""A value's label, and the value to set."""
MOST = 100_000
"""Of the values of an axis, and of the points of a sweep."""


class Range(Model):
    """Numbers with a constant step."""

    first: float = Field(alias="from")
    """The first number."""
    last: float = Field(alias="to")
    """Upper bound of the numbers."""
    step: Annotated[float, Field(gt=0)] = 1
    """Difference between neighbours."""
    unit: str = ""
    """Unit of the numbers, e.g. Mbps."""

    @model_validator(mode="after")
    def _goes_up(self) -> Self:
        if self.last < self.first:
            raise RuleError(f"the range ends at {self.last:g}, before it begins at {self.first:g}", at=("to",))
        if (self.last - self.first) / self.step >= MOST:
            raise RuleError("the range has too many values", allowed=f"up to {MOST}, e.g. with a larger step")
        return self

    @property
    def numbers(self) -> list[float]:
        """The numbers, computed in decimal, so that 0.1 + 0.2 is 0.3."""
        first, last, step = (Decimal(repr(number)) for number in (self.first, self.last, self.step))
        return [float(first + number * step) for number in range(int((last - first) / step) + 1)]


class LogRange(Model):
    """Numbers with a constant ratio."""

    first: Annotated[float, Field(gt=0)] = Field(alias="from")
    """The first number."""
    last: Annotated[float, Field(gt=0)] = Field(alias="to")
    """The last number."""
    count: Annotated[int, Field(ge=2, le=MOST)]
    """Number of values."""
    unit: str = ""
    """Unit of the numbers, e.g. Mbps."""

    @property
    def numbers(self) -> list[float]:
        """The numbers to six significant digits, with the ends as given."""
        factor = (self.last / self.first) ** (1 / (self.count - 1))
        between = [float(f"{self.first * factor**number:.6g}") for number in range(1, self.count - 1)]
        return [self.first, *between, self.last]


class OfRange(Model):
    """An axis written {range: {from: 1, to: 5}}."""

    range: Range

    @property
    def values(self) -> list[Value]:
        return _with_unit(self.range.numbers, self.range.unit)


class OfLogRange(Model):
    """An axis written {log_range: {from: 0.001, to: 0.1, count: 3}}."""

    log_range: LogRange

    @property
    def values(self) -> list[Value]:
        return _with_unit(self.log_range.numbers, self.log_range.unit)


def label_of(value: object) -> str:
    """The label of a scalar, as in YAML."""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def only_key(given: object) -> str | None:
    """The only key of a mapping, or field of a model; None if there are several."""
    keys = type(given).model_fields if isinstance(given, Model) else given if isinstance(given, Mapping) else ()
    return str(next(iter(keys))) if len(keys) == 1 else None


def _kind(given: object) -> str:
    if (key := only_key(given)) in ("range", "log_range"):
        return str(key)
    return "labelled" if isinstance(given, Mapping) else "listed"


def _check_listed(values: list[Any]) -> list[Any]:
    labels: set[str] = set()
    for place, value in enumerate(values):
        if isinstance(value, list | dict):
            problem = "lists and mappings need labels: write the axis as {label: value, ...}"
            raise RuleError(problem, at=(place,))
        if (label := label_of(value)) in labels:
            raise RuleError(f"'{label}' exists twice", at=(place,))
        labels.add(label)
    return values


def _with_unit(numbers: list[float], unit: str) -> list[Value]:
    whole = [int(number) if number.is_integer() and math.fabs(number) < 1e15 else number for number in numbers]
    return [(f"{number} {unit}", f"{number} {unit}") if unit else (str(number), number) for number in whole]


Axis = Annotated[
    Annotated[list[Any], Field(min_length=1, max_length=MOST), AfterValidator(_check_listed), Tag("listed")]
    | Annotated[dict[str, Any], Field(min_length=1, max_length=MOST), Tag("labelled")]
    | Annotated[OfRange, Tag("range")]
    | Annotated[OfLogRange, Tag("log_range")],
    Discriminator(_kind),
]


def values_of(axis: Any) -> list[Value]:
    """The values along an axis, in order."""
    match axis:
        case list():
            return [(label_of(value), value) for value in axis]
        case dict():
            return list(axis.items())
        case _:
            values: list[Value] = axis.values
            return values
