"""Quantities as people write them ("50 Mbps", "80 ms", "24 cores") and as the code computes with them (SI floats)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

_WRITTEN = re.compile(r"\s*(?P<number>[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?|nan|inf))\s*(?P<suffix>\S*)\s*")


@dataclass(frozen=True)
class Unit:
    """A quantity and the suffixes that it may be written with.

    Reading and writing are exact: `parse(format(x)) == x` for every finite x >= 0. Scaling happens in decimal, so
    "0.3 ms" is the float nearest to 0.0003 and not a product of two rounded floats.
    """

    quantity: str
    example: str
    base: str
    """The suffix of the unit that floats are in."""
    factors: Mapping[str, str]
    """What one of each suffix is worth in the base unit, in decimal."""
    written: tuple[str, ...]
    """The suffixes that `format` chooses from, largest first."""
    bare: bool
    """Whether a number without a suffix is understood, as one in the base unit."""

    def parse(self, given: object) -> float:
        """Read a text such as "50 Mbps", or a bare number where the unit takes one.

        Raises:
            ValueError: It is no such quantity, or is negative or not finite.
        """
        match = _WRITTEN.fullmatch(str(given)) if isinstance(given, str | int | float) else None
        suffix = match["suffix"] or (self.base if self.bare else "") if match else ""
        if match is None or suffix not in self.factors:
            raise ValueError(
                f"{given!r} is not a {self.quantity}; write e.g. {self.example!r} (units: {', '.join(self.factors)})"
            )
        number = Decimal(match["number"])
        value = float(number * Decimal(self.factors[suffix])) if number.is_finite() else math.inf
        if math.isinf(value):
            raise ValueError(f"{given!r} is no finite {self.quantity}")
        if value < 0:
            raise ValueError(f"{given!r} is negative; a {self.quantity} is 0 or more")
        return abs(value)  # "-0 s" is 0

    def format(self, value: float) -> str:
        """Write a finite value >= 0 of the base unit with the largest suffix of which it holds at least one."""
        number = Decimal(repr(float(value)))
        fitting = (suffix for suffix in self.written if number >= Decimal(self.factors[suffix]))
        suffix = next(fitting, self.written[-1] if number else self.base)
        scaled = (number / Decimal(self.factors[suffix])).normalize()
        return f"{scaled:f} {suffix}" if -6 <= scaled.adjusted() <= 15 else f"{scaled} {suffix}"

    def json_schema(self) -> dict[str, Any]:
        """How JSON Schema describes the written form."""
        kinds = ["string", "number"] if self.bare else "string"
        units = ", ".join(self.factors)
        return {"type": kinds, "title": self.quantity, "description": f"units: {units}", "examples": [self.example]}


DURATION = Unit(
    quantity="duration",
    example="80 ms",
    base="s",
    factors={"us": "1e-6", "ms": "1e-3", "s": "1", "min": "60", "h": "3600"},
    written=("s", "ms", "us"),
    bare=True,
)
BANDWIDTH = Unit(
    quantity="bandwidth",
    example="50 Mbps",
    base="bps",
    factors={
        prefix + name: f"{bits}{scale}"
        for name, bits in [("bps", 1), ("bit/s", 1), ("B/s", 8)]
        for prefix, scale in [("", "e0"), ("k", "e3"), ("M", "e6"), ("G", "e9")]
    },
    written=("Gbps", "Mbps", "kbps", "bps"),
    bare=False,  # 50 could be Mbps, MB/s or bps
)
CORES = Unit(
    quantity="number of cores",
    example="24 cores",
    base="cores",
    factors={"cores": "1", "core": "1"},
    written=("cores",),
    bare=True,
)

Duration = Annotated[
    float,
    BeforeValidator(DURATION.parse),
    PlainSerializer(DURATION.format, when_used="json"),
    WithJsonSchema(DURATION.json_schema()),
]
"""Seconds; written with a unit, or as a bare number of seconds."""

PositiveDuration = Annotated[Duration, Field(gt=0)]
"""Seconds, more than 0."""

Bandwidth = Annotated[
    float,
    BeforeValidator(BANDWIDTH.parse),
    PlainSerializer(BANDWIDTH.format, when_used="json"),
    WithJsonSchema(BANDWIDTH.json_schema()),
]
"""Bits per second; written with a unit."""

Cores = Annotated[
    float,
    BeforeValidator(CORES.parse),
    PlainSerializer(CORES.format, when_used="json"),
    WithJsonSchema(CORES.json_schema()),
]
"""Cores, not necessarily whole; written with a unit or bare."""
