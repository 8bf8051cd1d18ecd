"""Comparisons in which all systems have one learning rate, and such in which each has its own best one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dlion_sim.analysis import Group, in_order
from dlion_sim.studies.reproduction.claims import Rates

REGIME = "rates"
"""The label that tells the regimes apart, in the place of the rate."""
_RATE = "workload.optimizer.learning_rate"


def by_regime(groups: Sequence[Group], rates: Rates) -> list[Group]:
    """The groups of each regime, one regime after the other: those that are in both come twice, others are left out."""
    one = {} if rates.one is None else dict.fromkeys(rates.own, rates.one)
    return in_order([*_with(groups, "one for all", one), *_with(groups, "own", rates.own)])


def _with(groups: Sequence[Group], regime: str, rates: dict[str, float]) -> Iterator[Group]:
    for group in groups:
        labels = dict(group.labels)
        rate = labels.pop(_RATE, None)
        if rate is not None and float(rate) == rates.get(labels["system"]):
            yield Group({REGIME: regime, **labels}, group.runs)
