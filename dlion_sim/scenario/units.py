"""Quantities with units, as written ("50 Mbps", "80 ms", "24 cores") and in the code (SI floats)."""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Annotated, Any

from pydantic import Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

_NUMBER = re.compile(r"[-+]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{1,3}(?!\d))?|nan|inf)")
_MOST_CHARACTERS = 100
"""Maximum length of a quantity."""


class UnitError(ValueError):
    """An unknown unit; equal mistakes are reported once."""

    def __init__(self, problem: str, quantity: str, suffix: str) -> None:
        super().__init__(problem)
        self.mistake = quantity, suffix


@dataclass(frozen=True, eq=False)
class Unit:
    """A quantity and its suffixes.

    Reading and writing are exact: `parse(format(x)) == x` for every finite x >= 0. Scaling happens in decimal, so
    "0.3 ms" is the float nearest to 0.0003 and not a product of two rounded floats.
    """

    quantity: str
    example: str
    base: str
    """The suffix of the base unit, which floats are in."""
    factors: Mapping[str, str]
    """Value of each suffix in the base unit, in decimal."""
    written: tuple[str, ...]
    """Suffixes that `format` uses, largest first."""
    most: float
    """The largest allowed value; larger ones are typing errors, or overflow."""
    bare: bool
    """Whether a number without suffix is allowed, in the base unit. 0 always is."""

    def parse(self, given: object) -> float:
        """Read a text such as "50 Mbps", or a bare number where the unit takes one.

        Raises:
            ValueError: It is not such a quantity, or is negative or not finite.
        """
        text = str(given).strip() if isinstance(given, str | int | float) else ""
        match = _NUMBER.match(text) if len(text) <= _MOST_CHARACTERS else None
        number = Decimal(match[0]) if match else Decimal(0)
        suffix = text[match.end() :].lstrip() if match else ""
        if match and not suffix and (self.bare or not number or not number.is_finite()):
            suffix = self.base
        if suffix not in self.factors:
            raise self._no_quantity(given, suffix)
        value = float(number * Decimal(self.factors[suffix])) if number.is_finite() else math.inf
        if math.isinf(value):
            raise ValueError(f"{given!r} is not a finite {self.quantity}")
        if value < 0:
            raise ValueError(f"{given!r} is negative; a {self.quantity} is 0 or more")
        if value > self.most:
            raise ValueError(f"{given!r} is too much; a {self.quantity} is at most {self.format(self.most)}")
        return abs(value)  # "-0 s" is 0

    def _no_quantity(self, given: object, suffix: str) -> UnitError:
        meant = next(filter(self.factors.__contains__, (suffix.replace("ps", "/s"), suffix.replace("/s", "ps"))), None)
        alike = [each for each in self.factors if each.lower() == suffix.lower()]
        meant = meant or (alike[0] if len(alike) == 1 else None)
        how = f": '{suffix}' is not a unit, write {meant}" if meant else f"; write e.g. {self.example!r}"
        problem = f"{reprlib.repr(given)} is not a {self.quantity}{how} (units: {', '.join(self.factors)})"
        return UnitError(problem, self.quantity, suffix)

    def format(self, value: float) -> str:
        """Write a finite value >= 0 of the base unit with the largest suffix of which it holds at least one."""
        number = Decimal(repr(float(value)))
        fitting = (suffix for suffix in self.written if number >= Decimal(self.factors[suffix]))
        suffix = next(fitting, self.written[-1] if number else self.base)
        scaled = (number / Decimal(self.factors[suffix])).normalize()
        return f"{scaled:f} {suffix}" if -6 <= scaled.adjusted() <= 15 else f"{scaled} {suffix}"

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """As annotation of a float: parses and formats it."""
        return core_schema.no_info_before_validator_function(
            self.parse,
            handler(source),
            serialization=core_schema.plain_serializer_function_ser_schema(self.format, when_used="json"),
        )

    def __get_pydantic_json_schema__(self, *_: Any) -> dict[str, Any]:
        return self.json_schema()

    def json_schema(self) -> dict[str, Any]:
        """JSON Schema of the written form."""
        kinds = ["string", "number"] if self.bare else "string"
        units = ", ".join(self.factors)
        return {"type": kinds, "title": self.quantity, "description": f"units: {units}", "examples": [self.example]}


DURATION = Unit(
    quantity="duration",
    example="80 ms",
    base="s",
    factors={"us": "1e-6", "ms": "1e-3", "s": "1", "min": "60", "h": "3600", "d": "86400"},
    written=("s", "ms", "us"),
    most=1e10,
    bare=False,  # 100 could be ms or s
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
    most=1e15,
    bare=False,  # 50 could be Mbps, MB/s or bps
)
SIZE = Unit(
    quantity="size",
    example="3 MiB",
    base="B",
    factors={
        "B": "1",
        **{prefix + "B": scale for prefix, scale in [("k", "1e3"), ("M", "1e6"), ("G", "1e9")]},
        **{prefix + "iB": str(1024**power) for power, prefix in enumerate("KMG", 1)},
    },
    written=("GiB", "MiB", "KiB", "B"),
    most=1e15,
    bare=False,  # 6 could be bytes or MB
)
QUEUE = replace(
    SIZE,
    quantity="size of a queue",
    example="30 packets",
    factors={**SIZE.factors, "packet": "1514", "packets": "1514"},
)
CORES = Unit(
    quantity="number of cores",
    example="24 cores",
    base="cores",
    factors={"cores": "1", "core": "1"},
    written=("cores",),
    most=1e9,
    bare=True,
)
RATE = Unit(
    quantity="rate of samples",
    example="50/s",
    base="samples/s",
    factors={"samples/s": "1", "/s": "1"},
    written=("samples/s",),
    most=1e9,
    bare=False,  # 50 could be a second's or a minute's
)
PARAMETERS = Unit(
    quantity="number of parameters",
    example="1.3 B",
    base="parameters",
    factors={"parameters": "1", "k": "1e3", "M": "1e6", "B": "1e9", "T": "1e12"},
    written=("T", "B", "M", "k", "parameters"),
    most=1e15,
    bare=True,
)
FLOPS = Unit(
    quantity="number of floating-point operations",
    example="16 TFLOP",
    base="FLOP",
    factors={f"{prefix}FLOP": f"1e{power}" for prefix, power in [("", 0), ("M", 6), ("G", 9), ("T", 12), ("P", 15)]},
    written=("PFLOP", "TFLOP", "GFLOP", "MFLOP", "FLOP"),
    most=1e24,
    bare=False,  # 16 could be GFLOP or TFLOP
)

Duration = Annotated[float, DURATION]
"""Seconds; written with a unit."""

PositiveDuration = Annotated[Duration, Field(gt=0)]
"""Seconds, more than 0."""

Bandwidth = Annotated[float, BANDWIDTH]
"""Bits per second; written with a unit."""

Size = Annotated[float, SIZE]
"""Bytes; written with a unit."""

QueueSize = Annotated[float, QUEUE]
"""Bytes; written with a unit, which may be packets of 1514 bytes, full Ethernet frames."""

Cores = Annotated[float, CORES]
"""Cores, not necessarily whole; written with a unit or bare."""

Rate = Annotated[float, RATE]
"""Samples per second; written with a unit."""

Parameters = Annotated[float, PARAMETERS]
"""Parameters of a model; written with a unit or bare."""

Flops = Annotated[float, FLOPS]
"""Floating-point operations; written with a unit."""
