"""Estimates of a sweep's wall time, from completed runs of the same kind, or by starting one run of each kind."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple

from dlion_sim.own_code import own_errors_told
from dlion_sim.results.numbers import duration
from dlion_sim.scenario import Scenario
from dlion_sim.sweep.job import fraction_done
from dlion_sim.sweep.points import Point
from dlion_sim.sweep.processes import cores
from dlion_sim.sweep.state import Found, State

MOST_BEGUN = 6
"""Maximum number of kinds that are measured; others are assumed to take the mean of these."""
WATCHED_SECONDS = 2.0
"""Wall time for which each of them is measured."""
_OFF_BY = {True: 1.25, False: 2.0}
"""Error factor of estimates, by whether they are from completed runs."""


@dataclass(frozen=True)
class Estimate:
    """Wall time in seconds. If a target may end runs early, all values are upper bounds."""

    seconds: float
    low: float
    high: float

    @property
    def text(self) -> str:
        """E.g. "about 45 min (36 min to 56 min)"."""
        return f"about {duration(self.seconds, 2)} ({duration(self.low, 2)} to {duration(self.high, 2)})"


def estimate(
    points: Sequence[Point],
    found: Mapping[str, Found],
    *,
    jobs: int | None = None,
    device: Literal["auto", "cpu", "cuda"] = "auto",
    most: int = MOST_BEGUN,
    watch: float = WATCHED_SECONDS,
) -> Estimate:
    """What the points that are not done will take, so many `jobs` side by side, by default one a core.

    Args:
        points: All points, which were checked.
        found: How far each is, by name.
        jobs: As for `LocalProcesses`.
        device: Where gradients are computed.
        most: How many kinds of runs are begun at the most. Runs are of a kind if they differ in seeds and rates alone.
        watch: How long (s) each of these is watched.

    Raises:
        InputError: A run cannot be begun.
        OwnCodeError: The user's own code fails in one.
    """
    kinds: dict[str, list[Point]] = {}
    for point in points:
        kinds.setdefault(_kind(point.scenario()), []).append(point)
    missing = {
        kind: count
        for kind, alike in kinds.items()
        if (count := sum(found[point.name].state is not State.DONE for point in alike))
    }
    total = sum(missing.values())
    if not total:
        return Estimate(0.0, 0.0, 0.0)
    processes = min(jobs or cores(), total)
    known = {kind: seconds for kind in missing if (seconds := _seconds_of_done(kinds[kind], found)) is not None}
    takes = {**known}
    unknown = [kind for kind in missing if kind not in known]
    with _threads(max(1, cores() // processes)):
        for number in range(min(most, len(unknown))):
            # Spread over all of them, as those that differ most stand apart.
            kind = unknown[number * len(unknown) // min(most, len(unknown))]
            if not takes:  # Compiled code has to be loaded once.
                run_seconds(kinds[kind][0].scenario(), device, watch / 4)
            takes[kind] = run_seconds(kinds[kind][0].scenario(), device, watch)
    average = fmean(takes.values())
    each = [(takes.get(kind, average), count, _OFF_BY[kind in known]) for kind, count in missing.items()]
    longest = max(seconds for seconds, _, _ in each)
    in_turn = max(sum(seconds * count for seconds, count, _ in each) / processes, longest)
    off_by = fmean(off for _, _, off in each)
    return Estimate(in_turn, in_turn / off_by, in_turn * off_by)


class Observation(NamedTuple):
    """A simulation in progress."""

    wall: float
    """Wall time (s), on any clock."""
    done: float
    """The fraction of the run that is done."""
    virtual: float
    """Virtual time (s)."""


def run_seconds(
    scenario: Scenario, device: Literal["auto", "cpu", "cuda"] = "auto", watch: float = WATCHED_SECONDS
) -> float:
    """Estimate a run's wall time (s) on this machine by running its beginning.

    The measurement lasts `watch` seconds, after half of that for warming up. The first run of a process, which has
    much to load, is a bad estimate.

    Raises:
        InputError: The run cannot be started.
        OwnCodeError: The user's own code fails.
    """
    from dlion_sim.simulation import Progress, simulate

    began = time.monotonic()
    seen: list[Observation] = []

    def observe(progress: Progress) -> None:
        done = fraction_done(scenario, None, progress)
        if done > 0 or not seen:
            seen.append(Observation(time.monotonic(), done, progress.virtual_seconds))

    def warm() -> int:
        return next((place for place, each in enumerate(seen) if each.wall - seen[0].wall > watch / 2), len(seen))

    def is_enough() -> bool:
        first = warm()
        return first < len(seen) - 1 and seen[-1].wall - seen[first].wall > watch and seen[-1].done > seen[first].done

    with TemporaryDirectory(prefix="dlion-") as folder, own_errors_told(scenario.references):
        run = simulate(
            scenario, Path(folder) / "run", device=device, checkpoint_every=None, interrupted=is_enough, observe=observe
        )
        evaluations = int((run.metrics()["kind"] == "evaluation").sum()) / len(scenario.cluster.workers)
    took = time.monotonic() - began
    summary = run.summary
    if summary is None or run.manifest["status"] != "interrupted":  # It ended by itself, perhaps by a loss.
        return took
    evaluation = summary["wall_seconds"] * (summary["evaluation_share"] or 0.0) / max(1.0, evaluations)
    return took + remaining_seconds(
        seen[warm()], seen[-1], evaluation=evaluation, every=scenario.workload.evaluate_every
    )


def remaining_seconds(since: Observation, until: Observation, *, evaluation: float, every: float) -> float:
    """Extrapolate from two observations the wall time (s) that the rest of the run takes after the second.

    An evaluation takes `evaluation` seconds of wall time, once per `every` seconds of virtual time. It is counted
    apart, as few or none may be between the two.
    """
    watched = until.wall - since.wall
    computing = max(watched / 10, watched - evaluation * (until.virtual // every - since.virtual // every))
    rest = 1 - until.done
    return rest * computing / (until.done - since.done) + rest * until.virtual / until.done / every * evaluation


def _kind(scenario: Scenario) -> str:
    """Equal for scenarios that differ only in what does not affect wall time."""
    costs = scenario.workload.model_copy(update={"optimizer": {"kind": scenario.workload.optimizer.kind}})
    alike = scenario.model_copy(update={"seed": 0, "name": "-", "description": "", "workload": costs})
    return repr(alike)


def _seconds_of_done(points: Sequence[Point], found: Mapping[str, Found]) -> float | None:
    """The mean of completed runs; None without any."""
    runs = [each.run for point in points if (each := found[point.name]).state is State.DONE and each.run]
    took = [run.summary["wall_seconds"] for run in runs if run.summary]
    return fmean(took) if took else None


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """Compute gradients with this number of threads, as in a process of a sweep."""
    import torch

    former = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(former)
