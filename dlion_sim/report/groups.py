"""Who is drawn as one line: each worker by itself where they are few, else the workers of a micro-cloud, or all."""

from __future__ import annotations

from collections.abc import Sequence

from dlion_sim.results import Run, participants

MOST_WORKERS = 8
"""That are drawn each by itself."""
_MOST_CLOUDS = 8


def clouds(run: Run) -> list[str]:
    """The micro-cloud of each participant; in old runs the names of workers begin with it."""
    told: Sequence[str] | None = run.manifest.get("clouds")
    return list(told) if told else [name.rpartition("/")[0] for name in participants(run.manifest)]


def groups(run: Run) -> dict[str, list[int]]:
    """The numbers of the workers that make one line, by what it is called."""
    names = run.manifest["workers"]
    if len(names) <= MOST_WORKERS:
        return {name: [worker] for worker, name in enumerate(names)}
    by_cloud: dict[str, list[int]] = {}
    for worker, cloud in enumerate(clouds(run)[: len(names)]):
        by_cloud.setdefault(cloud, []).append(worker)
    if 1 < len(by_cloud) <= _MOST_CLOUDS:
        return {f"{cloud} ({len(workers)} workers)": workers for cloud, workers in by_cloud.items()}
    return {f"all {len(names)} workers": list(range(len(names)))}
