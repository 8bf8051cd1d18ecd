"""What is given: the scenario of a study, its target, and the goal on its own machines."""

from __future__ import annotations

import copy
from contextlib import suppress
from dataclasses import replace

from dlion_sim.errors import InputError
from dlion_sim.recommend.goal import Goal
from dlion_sim.scenario import Scenario, from_data, tariff
from dlion_sim.sweep import Base


def scenario_of(base: Base, *, own: bool = False) -> Scenario:
    """The scenario of a base. Unless its `own` machines are used, they need no prices.

    Raises InputError, which does not name the file.
    """
    if own:
        return from_data(base.data, folder=base.file.parent)
    data = copy.deepcopy(base.data)
    with suppress(AttributeError, KeyError, TypeError):  # `from_data` reports what is wrong
        for group in (group for cloud in data["cluster"]["clouds"] for group in cloud["workers"]):
            if "instance" not in group:
                group.setdefault("price", 0)
    return from_data(data, folder=base.file.parent)


def own_goal(scenario: Scenario, given: Goal | None) -> Goal:
    """The goal on the scenario's own machines: without prices always the fastest."""
    if given is None:
        if scenario.duration is None:
            raise InputError("the scenario has no duration", allowed="`deadline` 6h, or duration: 6 h")
        return Goal(deadline=scenario.duration, is_fastest=True)
    if tariff(scenario) is not None:
        return given
    if given.deadline is None:
        raise InputError(
            "the machines have no prices", file="`budget`", allowed="`deadline` 6h, or a price: of each of the workers"
        )
    return replace(given, is_fastest=True)


def target_of(scenario: Scenario) -> float:
    """The target's value. Raises InputError without one."""
    target = scenario.target if scenario.target_accuracy is None else scenario.target_accuracy
    if target is None:
        raise InputError(
            "there is no target",
            path="target_accuracy",
            allowed="`target_accuracy`, e.g. 80, or one in the scenario",
        )
    return target
