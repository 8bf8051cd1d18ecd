"""The cost of a run: machine time, traffic between clouds, energy and CO2."""

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
"""Bytes per unit of the price of traffic."""


class Tariff(TypedDict):
    """All prices of a run, in one currency."""

    per_hour: list[Seconds]
    """Of each machine: workers, and parameter servers that have one of their own."""
    step: Annotated[float, msgspec.Meta(gt=0.0, le=MOST)]
    """Time is billed in steps of this length, rounded up."""
    least: Seconds
    """The minimum that is billed."""
    egress: dict[ShortText, dict[ShortText, Seconds]] | None
    """Per GB, by sending and then by receiving cloud; None: traffic has no price."""
    watts: list[Seconds] | None
    """Of each machine, if all are known."""
    carbon: list[Seconds] | None
    """Grams of CO2 a kWh, likewise."""
    spot: NotRequired[list[bool]]
    """Which machines are paid, and draw power, only while they are up; by default none."""
    restart: NotRequired[Seconds]
    """Time from the start of such a machine until its process runs."""


class Cost(TypedDict, total=False):
    """The cost of a run, as far as there are prices."""

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
    outages: Mapping[int, Sequence[tuple[float, float]]] = MappingProxyType({}),
) -> Cost:
    """The cost of a run of so many seconds, with the bytes `carried` by sending and receiving cloud.

    `outages` are the times (s) without its process by machine, begin and end.
    """
    away = unpaid(tariff, seconds, outages)
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
    """The cost of the machines of a run of so many seconds, of which spot machines were `away` for some."""
    saved = _saved_hours(tariff, seconds, away)
    return billed_hours(tariff, seconds) * sum(tariff["per_hour"]) - _sum_of(tariff["per_hour"], saved)


def unpaid(tariff: Tariff, seconds: float, outages: Mapping[int, Sequence[tuple[float, float]]]) -> dict[int, float]:
    """For how many of the first `seconds` each machine is not paid: a spot machine, until it restarts."""
    starts = tariff.get("restart", 0.0)
    return {
        machine: sum(max(0.0, min(end - starts, seconds) - min(begin, seconds)) for begin, end in outages[machine])
        for machine in spot_machines(tariff) & outages.keys()
    }


def spot_machines(tariff: Tariff) -> set[int]:
    """The machines that are not paid during outages."""
    both = zip(tariff["per_hour"], tariff.get("spot", ()), strict=False)
    return {machine for machine, (_, is_spot) in enumerate(both) if is_spot}


def _saved_hours(tariff: Tariff, seconds: float, away: Mapping[int, float]) -> dict[int, float]:
    hours = billed_hours(tariff, seconds)
    return {machine: hours - billed_hours(tariff, seconds - gone) for machine, gone in away.items()}


def _sum_of(rates: Sequence[float], amounts: Mapping[int, float]) -> float:
    """The sum of the amounts at their machines' rates."""
    return sum(rates[machine] * amount for machine, amount in amounts.items())


def billed_hours(tariff: Tariff, seconds: float) -> float:
    """Of a machine that was up for so many seconds."""
    # A sum of times of 60.000000000000007 s counts as 60 s.
    steps = math.ceil(round(seconds / tariff["step"], 6))
    return max(steps * tariff["step"], tariff["least"]) / _HOUR
