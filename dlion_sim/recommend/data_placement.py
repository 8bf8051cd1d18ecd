"""Placement of training samples in candidates: at their owners' clouds, or an assumption."""

from __future__ import annotations

from typing import Any

from dlion_sim.scenario import Owners, Scenario


def data_are_local(scenario: Scenario) -> bool:
    """Whether samples have owners that keep them, so that every cloud must participate."""
    return isinstance(scenario.workload.partition, Owners)


def local_partition(scenario: Scenario) -> dict[str, Any]:
    """The partition by cloud that a candidate sets, for any number of workers."""
    partition = scenario.workload.partition
    if not isinstance(partition, Owners) or partition.at is None:
        return {}
    at: dict[str, list[int]] = {}
    for place, owners in partition.at.items():
        at.setdefault(_cloud(place), []).extend(owners)
    return {"workload.partition": {"kind": "owners", "at": at}}


def data_placement(scenario: Scenario, *, own: bool) -> dict[str, Any]:
    """The entry of a recommendation: whether data `stay`, and where they are, as text (`summary`).

    They stay on the scenario's `own` machines in any case.
    """
    if own:
        kind = scenario.workload.partition.kind
        return {"stay": True, "summary": f"training samples are placed as in the scenario (workload.partition: {kind})"}
    return {"stay": data_are_local(scenario), "summary": _in_words(scenario)}


def _in_words(scenario: Scenario) -> str:
    partition, clouds = scenario.workload.partition, [cloud.name for cloud in scenario.cluster.clouds]
    how = f"workload.partition: {{kind: owners, at: {{{clouds[0]}: 0, ...}}}}"
    if len(clouds) == 1:
        return f"all training samples are in {clouds[0]}"
    if isinstance(partition, Owners):
        named = {_cloud(place) for place in partition.at or ()}
        if named == {*clouds}:
            return "each owner's samples stay in their cloud, and every cloud participates (workload.partition.at)"
        which = "owners that workload.partition.at does not name" if named else "all owners"
        return (
            f"assumed: every cloud participates, and the samples of {which} are assigned at random, by seed "
            f"and number of workers; {how} sets their place"
        )
    if partition.kind == "shared":
        return "assumed: every worker has all training samples (workload.partition: shared)"
    return (
        f"assumed: training samples are partitioned among the workers of each candidate (workload.partition: "
        f"{partition.kind}), and a single cloud has all of them; if clouds have data of their own, use {how}"
    )


def _cloud(place: str) -> str:
    return place.partition("/")[0]
