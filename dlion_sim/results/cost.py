"""What a run cost: the time of its machines, what left one cloud for another, energy and CO2."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, NotRequired, Required, TypedDict

import msgspec

from dlion_sim.results.json_document import MOST, Seconds, ShortText

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
    spot: NotRequired[list[bool]]
    """Which machines are paid, and draw power, only while they are there; by default none."""
    restart: NotRequired[Seconds]
    """For so long before its process runs again, one of these is there already."""


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


def cost_of(
    tariff: Tariff,
    seconds: float,
    carried: Mapping[tuple[str, str], float],
    absences: Mapping[int, Sequence[tuple[float, float]]] = MappingProxyType({}),
) -> Cost:
    """What a run of so many seconds cost, in which so many bytes were `carried` from one cloud to another.

    `absences` are from when to when (s) the process of each machine did not run, as far as some did not.
    """
    away = unpaid(tariff, seconds, absences)
    machines = machines_cost(tariff, seconds, away)
    hours = billed_hours(tariff, seconds) * len(tariff["per_hour"]) - sum(_saved_hours(tariff, seconds, away).values())
    cost: Cost = {"total": machines, "machines": machines, "machine_hours": hours}
    if (prices := tariff["egress"]) is not None:
        cost["egress"] = sum(size * prices[a][b] for (a, b), size in carried.items()) / GB
        cost["egress_gb"] = sum(carried.values()) / GB
        cost["total"] += cost["egress"]
    if (watts := tariff["watts"]) is not None:
        cost["energy_kwh"] = (seconds * sum(watts) - _sum_of(watts, away)) / _JOULES
        if (carbon := tariff["carbon"]) is not None:
            grams = [watt * each for watt, each in zip(watts, carbon, strict=True)]
            cost["co2_kg"] = (seconds * sum(grams) - _sum_of(grams, away)) / _JOULES / 1000
    return cost


def machines_cost(tariff: Tariff, seconds: float, away: Mapping[int, float]) -> float:
    """What the machines of a run of so many seconds cost, of which spot machines were `away` for so many."""
    saved = _saved_hours(tariff, seconds, away)
    return billed_hours(tariff, seconds) * sum(tariff["per_hour"]) - _sum_of(tariff["per_hour"], saved)


def unpaid(tariff: Tariff, seconds: float, absences: Mapping[int, Sequence[tuple[float, float]]]) -> dict[int, float]:
    """For how many of the first `seconds` each machine is not paid: of a spot machine, until it starts again."""
    starts = tariff.get("restart", 0.0)
    return {
        machine: sum(max(0.0, min(end - starts, seconds) - min(begin, seconds)) for begin, end in absences[machine])
        for machine in spot_machines(tariff) & absences.keys()
    }


def spot_machines(tariff: Tariff) -> set[int]:
    """The machines that are not paid while they are away."""
    both = zip(tariff["per_hour"], tariff.get("spot", ()), strict=False)
    return {machine for machine, (_, is_spot) in enumerate(both) if is_spot}


def _saved_hours(tariff: Tariff, seconds: float, away: Mapping[int, float]) -> dict[int, float]:
    hours = billed_hours(tariff, seconds)
    return {machine: hours - billed_hours(tariff, seconds - gone) for machine, gone in away.items()}


def _sum_of(rates: Sequence[float], amounts: Mapping[int, float]) -> float:
    """What so much comes to at the rates of some machines."""
    return sum(rates[machine] * amount for machine, amount in amounts.items())


def billed_hours(tariff: Tariff, seconds: float) -> float:
    """Of each machine that there was for so many seconds."""
    # A sum of times that comes to 60.000000000000007 s is one of 60 s.
    steps = math.ceil(round(seconds / tariff["step"], 6))
    return max(steps * tariff["step"], tariff["least"]) / _HOUR
