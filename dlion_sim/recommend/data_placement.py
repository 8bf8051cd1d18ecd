"""Where training samples lie in the candidates: at their owners' clouds, or else what is assumed of them."""

from __future__ import annotations

from typing import Any

from dlion_sim.scenario import Owners, Scenario


def data_stay(scenario: Scenario) -> bool:
    """Whether samples have owners that keep them, so that every cloud has to take part."""
    return isinstance(scenario.workload.partition, Owners)


def kept_in_clouds(scenario: Scenario) -> dict[str, Any]:
    """What a candidate sets for a worker's samples to stay in its cloud, whatever workers the candidate has there."""
    partition = scenario.workload.partition
    if not isinstance(partition, Owners) or partition.at is None:
        return {}
    at: dict[str, list[int]] = {}
    for place, owners in partition.at.items():
        at.setdefault(_cloud(place), []).extend(owners)
    return {"workload.partition": {"kind": "owners", "at": at}}


def told_of_data(scenario: Scenario) -> dict[str, Any]:
    """As a recommendation tells it: whether data `stay`, and in words (`told`) where they are."""
    return {"stay": data_stay(scenario), "told": _in_words(scenario)}


def _in_words(scenario: Scenario) -> str:
    partition, clouds = scenario.workload.partition, [cloud.name for cloud in scenario.cluster.clouds]
    how = f"workload.partition: {{kind: owners, at: {{{clouds[0]}: 0, ...}}}}"
    if len(clouds) == 1:
        return f"all training samples lie in {clouds[0]}"
    if isinstance(partition, Owners):
        named = {_cloud(place) for place in partition.at or ()}
        if named == {*clouds}:
            return "each owner's samples stay in their cloud, and every cloud takes part (workload.partition.at)"
        which = "owners that workload.partition.at does not name" if named else "all owners"
        return (
            f"assumed: every cloud takes part, and the samples of {which} lie where a draw says, which differs by seed "
            f"and number of workers; {how} says where they are"
        )
    if partition.kind == "shared":
        return "assumed: in every cloud every worker holds all training samples (workload.partition: shared)"
    return (
        f"assumed: training samples are dealt to the workers of each candidate anew (workload.partition: "
        f"{partition.kind}), and a cloud alone has them all; where clouds have data of their own, say so: {how}"
    )


def _cloud(place: str) -> str:
    return place.partition("/")[0]
