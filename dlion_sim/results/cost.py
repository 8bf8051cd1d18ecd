"""What a run cost: the time of its machines, what left one cloud for another, energy and CO2."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Required, TypedDict

import msgspec

from dlion_sim.results.told import MOST, Seconds, ShortText

_HOUR = 3600.0
_JOULES = 3.6e6
"""In a kWh."""
GB = 1e9
"""Bytes that a price of traffic is of."""


class Tariff(TypedDict):
    """All prices of a run, in one currency."""

    per_hour: list[Seconds]
    """Of each machine: workers, and parameter servers that have one of their own."""
    step: Annotated[float, msgspec.Meta(gt=0.0, le=MOST)]
    """Time is billed in steps of so long, a begun one as a whole."""
    least: Seconds
    """So much time is billed in any case."""
    egress: dict[ShortText, dict[ShortText, Seconds]] | None
    """Of a GB, by sending and then by receiving cloud; None: traffic has no price."""
    watts: list[Seconds] | None
    """Of each machine, if all are known."""
    carbon: list[Seconds] | None
    """Grams of CO2 a kWh, likewise."""


class Cost(TypedDict, total=False):
    """What a run cost, as far as there are prices."""

    total: Required[Seconds]
    machines: Required[Seconds]
    machine_hours: Required[Seconds]
    """That are billed."""
    egress: Seconds
    """Of the bytes between clouds, without headers and acknowledgements."""
    egress_gb: Seconds
    energy_kwh: Seconds
    co2_kg: Seconds


def cost_of(tariff: Tariff, seconds: float, carried: Mapping[tuple[str, str], float]) -> Cost:
    """What a run of so many seconds cost, in which so many bytes were `carried` from one cloud to another."""
    hours = billed_hours(tariff, seconds)
    machines = hours * sum(tariff["per_hour"])
    cost: Cost = {"total": machines, "machines": machines, "machine_hours": hours * len(tariff["per_hour"])}
    if (prices := tariff["egress"]) is not None:
        cost["egress"] = sum(size * prices[a][b] for (a, b), size in carried.items()) / GB
        cost["egress_gb"] = sum(carried.values()) / GB
        cost["total"] += cost["egress"]
    if (watts := tariff["watts"]) is not None:
        cost["energy_kwh"] = seconds * sum(watts) / _JOULES
        if (carbon := tariff["carbon"]) is not None:
            grams = sum(watt * each for watt, each in zip(watts, carbon, strict=True))
            cost["co2_kg"] = seconds * grams / _JOULES / 1000
    return cost


def billed_hours(tariff: Tariff, seconds: float) -> float:
    """Of each machine that there was for so many seconds."""
    # A sum of times that comes to 60.000000000000007 s is one of 60 s.
    steps = math.ceil(round(seconds / tariff["step"], 6))
    return max(steps * tariff["step"], tariff["least"]) / _HOUR
