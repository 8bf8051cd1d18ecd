"""Stash's claims on stalls in the cloud, and results of simulations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import permutations
from typing import NamedTuple

import pandas as pd

from benchmarks.instances import ONE, TWO, Placement
from dlion_sim.analysis.stalls.macroscopic import fit


class Claim(NamedTuple):
    """A claim, and its result here."""

    claim: str
    published: str
    here: str
    same_direction: str


def claims(rows: pd.DataFrame, families: pd.DataFrame) -> list[Claim]:
    """The claims, from the table of all runs and that of the families of networks."""
    two = [place for place in TWO if place.name in {*rows["instances"]}]
    return [_interconnect(rows), *(_network(rows, place) for place in two), *_dear(rows), *_features(families)]


def _interconnect(rows: pd.DataFrame) -> Claim:
    one = rows[rows["instances"].isin([place.name for place in ONE])].sort_values("interconnect")
    most = one.iloc[-1]
    here = (
        f"{one['interconnect'].min():.1%} to {most['interconnect']:.1%} ({most['network']} on {most['instances']}); "
        f"{most['waiting, overlapped']:.1%} if backward passes hide what they can"
    )
    agreed = most["waiting, overlapped"] > 0.5
    return Claim("interconnect stalls, of the training time", "up to 90 %", here, _agreed(agreed))


def _network(rows: pd.DataFrame, two: Placement) -> Claim:
    ordered = rows[rows["instances"] == two.name].sort_values("network slowdown")
    times = ordered["network slowdown"] + 1
    slower = int((times > 1).sum())
    here = (
        f"{times.min():.2f} to {times.max():.2f} ({ordered.iloc[-1]['network']}), "
        f"more than 1 for {slower} of {len(times)}"
    )
    return Claim(f"{two.name}, times as slow as one {TWO[two].name}", "up to 5", here, _agreed(slower > len(times) / 2))


def _dear(rows: pd.DataFrame) -> Iterator[Claim]:
    """The fastest and cheapest instances, and one that is slower than a cheaper one."""
    ones = [place for place in ONE if place.name in {*rows["instances"]}]
    dearest, networks = max(ones, key=lambda place: place.price), rows["network"].nunique()
    fastest, cheapest = (_best(rows, measure) for measure in ("epoch h", "epoch $"))
    counts = ", ".join(f"{name} for {count}" for name, count in cheapest.items())
    here = f"{dearest.name} is fastest for {fastest[dearest.name]} of {networks}; an epoch is cheapest on {counts}"
    yield Claim("dear instances are not always the best", "yes", here, _agreed(cheapest[dearest.name] < networks))
    hours = rows.pivot(index="network", columns="instances", values="epoch h")
    slower = {
        (dear.name, cheap.name): int((hours[dear.name] > hours[cheap.name]).sum())
        for dear, cheap in permutations(ones, 2)
        if dear.price > cheap.price
    }
    (dear, cheap), count = max(slower.items(), key=lambda found: found[1])
    if count:
        yield Claim("", "", f"{dear} costs more an hour than {cheap}, and is slower for {count}", "yes")


def _best(rows: pd.DataFrame, measure: str) -> Counter[str]:
    """The number of networks for which each placement has the minimum."""
    return Counter(str(each.sort_values(measure).iloc[0]["instances"]) for _, each in rows.groupby("network"))


def _features(families: pd.DataFrame) -> Iterator[Claim]:
    """Shares of stalls by messages and by bytes, by the fitted model."""
    ((two, one),) = ((two, one) for two, one in TWO.items() if two.name in {*families["instances"]})
    single, double = (_of(families, place) for place in (one, two))
    hops = 2 * (one.gpus - 1)
    messages, sent = hops * single["variables"], hops / one.gpus * 4 * single["parameters"]
    for kind, stalls, published in (
        ("interconnect", single["iteration s"] - single["alone s"], "layers"),
        ("network", double["iteration s"] - single["iteration s"], "gradients"),
    ):
        model = fit(messages.tolist(), sent.tolist(), stalls.tolist())
        of_messages, of_bytes = model.seconds_per_message * messages.sum(), model.seconds_per_byte * sent.sum()
        part = of_messages / (of_messages + of_bytes)
        by = {feature: stalls.corr(single[feature], method="spearman") for feature in ("variables", "parameters")}
        here = (
            f"{part:.0%} is by messages, {1 - part:.0%} by bytes ({1e6 * model.seconds_per_message:.3g} us a message, "
            f"{1e9 * model.seconds_per_byte:.3g} ns a byte, R² {model.explained:.3f}); rank correlation with variables "
            f"{by['variables']:.2f}, with parameters {by['parameters']:.2f}"
        )
        agreed = (part > 0.5) == (published == "layers")
        yield Claim(f"{kind} stalls grow with", published, here, _agreed(agreed))


def _of(families: pd.DataFrame, place: Placement) -> pd.DataFrame:
    return families[families["instances"] == place.name].set_index("network")


def _agreed(agreed: bool) -> str:
    return "yes" if agreed else "no"
