"""Who is drawn as one line: each worker by itself where they are few, else the workers of a micro-cloud, or all."""

from __future__ import annotations

from dlion_sim.results import Run, clouds_of

MOST_WORKERS = 8
"""That are drawn each by itself."""
_MOST_CLOUDS = 8


def groups(run: Run) -> dict[str, list[int]]:
    """The numbers of the workers that make one line, by what it is called."""
    names = run.manifest["workers"]
    if len(names) <= MOST_WORKERS:
        return {name: [worker] for worker, name in enumerate(names)}
    by_cloud: dict[str, list[int]] = {}
    for worker, cloud in enumerate(clouds_of(run.manifest)[: len(names)]):
        by_cloud.setdefault(cloud, []).append(worker)
    if 1 < len(by_cloud) <= _MOST_CLOUDS:
        return {f"{cloud} ({len(workers)} workers)": workers for cloud, workers in by_cloud.items()}
    return {f"all {len(names)} workers": list(range(len(names)))}
