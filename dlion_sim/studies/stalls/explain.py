"""The simulations from which a scenario's stalls are found, and their results in one folder."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dlion_sim.analysis.stalls.attribution import Stalls, stalls
from dlion_sim.analysis.stalls.differencing import STEPS
from dlion_sim.errors import InputError
from dlion_sim.figures import plot_stalls
from dlion_sim.protocol.compose import compose
from dlion_sim.results import Run
from dlion_sim.results.atomic import json_bytes, write
from dlion_sim.results.run_folder import holds_run
from dlion_sim.scenario import Scenario
from dlion_sim.simulation import Progress, resume, simulate
from dlion_sim.studies.stalls.document import document
from dlion_sim.studies.stalls.faster import longest_waits
from dlion_sim.studies.stalls.variants import COUNTERFACTUALS, Variant, base_step, faster_variant, variants

DOCUMENT, FIGURE = "stalls.json", "stalls.png"
WARM_UP = 5
"""Iterations of each worker that are left out."""

Observing = Callable[[Scenario], AbstractContextManager[Callable[[Progress], None]]]
"""Entered with each scenario during its simulation; yields a callback for its progress."""


@dataclass(frozen=True)
class StallStudy:
    """The stalls of a scenario."""

    base: Stalls
    """Stalls of the run of the unchanged scenario."""
    results: dict[str, Any]
    """The content of the document."""
    document: Path
    figure: Path


def explain(
    scenario: Scenario,
    folder: Path,
    *,
    iterations: int,
    links: int = 0,
    observing: Observing,
    force: bool = False,
    interrupted: Callable[[], bool] = lambda: False,
) -> StallStudy | None:
    """Simulate the variants of a scenario, each in a folder below `folder`, and write its stalls there.

    The `links` or machines with the longest waits, in this number, are then simulated twice as fast, one by one.
    Completed variants are not run again, and interrupted ones are resumed. Returns None if `interrupted`. Raises
    InputError for an invalid scenario, and for a `folder` with runs of another one, unless `force` replaces them.
    """
    if compose(scenario.system, scenario.modules).evaluates_server:
        raise InputError(
            "its workers rest between rounds, so that the length of iterations does not tell what they wait for",
            path="system",
            allowed="one whose workers train all the time",
        )
    names, planned = variants(scenario, iterations)
    _check(folder, planned, force=force)
    whole = base_step(scenario)
    runs = _run_all(planned, folder, observing, interrupted)
    if runs is None:
        return None
    faster_variants = {name: faster_variant(scenario, iterations, name) for name in longest_waits(runs[whole])[:links]}
    _check(folder, [*faster_variants.values()], force=force)
    faster = _run_all([*faster_variants.values()], folder, observing, interrupted)
    if faster is None:
        return None
    changing = [name for name in COUNTERFACTUALS if names[name] != whole]
    results = document(
        {step: runs[names[step]] for step in dict.fromkeys((*STEPS, whole))},
        {name: runs[names[name]] for name in changing},
        {name: faster[variant.name] for name, variant in faster_variants.items()},
        is_in_step=_is_in_step(scenario),
        is_recorded=scenario.records_transfers,
        warm_up=WARM_UP,
    )
    figure = plot_stalls(runs[whole], folder / FIGURE)
    write(folder / DOCUMENT, json_bytes(results))
    return StallStudy(runs[whole], results, folder / DOCUMENT, figure)


def _run_all(
    variants: list[Variant], folder: Path, observing: Observing, interrupted: Callable[[], bool]
) -> dict[str, Stalls] | None:
    """The stalls of each variant by name; None if interrupted."""
    found: dict[str, Stalls] = {}
    for variant in variants:
        with observing(variant.scenario) as observe:
            run = _run(variant, folder / variant.name, observe, interrupted)
        if run.manifest["status"] == "interrupted":
            return None
        if run.outcome["stopped_by"] != "iterations":
            raise InputError(f"ended before all iterations: {run.outcome['stopped_by']}", file=run.folder)
        found[variant.name] = stalls(run, WARM_UP)
    return found


def _check(folder: Path, planned: list[Variant], *, force: bool) -> None:
    if folder.exists() and not folder.is_dir():
        raise InputError("is a file", file=folder, allowed="a folder")
    for variant in planned:
        place = folder / variant.name
        if not force and holds_run(place) and not _is_of(variant, Run.open(place)):
            raise InputError(
                "holds a run of another scenario, or of other iterations",
                file=place,
                allowed="another folder; `force` replaces that run",
            )


def _run(variant: Variant, folder: Path, observe: Callable[[Progress], None], interrupted: Callable[[], bool]) -> Run:
    """The variant's run, complete unless interrupted or failed."""
    if holds_run(folder) and _is_of(variant, former := Run.open(folder)):
        if former.manifest["status"] == "completed":
            return former
        # Without a checkpoint, or with one of another version, it starts again.
        with suppress(InputError):
            return resume(folder, interrupted=interrupted, observe=observe)
    about = {"stalls": {"digest": variant.digest}}
    return simulate(variant.scenario, folder, force=True, manifest=about, interrupted=interrupted, observe=observe)


def _is_of(variant: Variant, run: Run) -> bool:
    return bool(run.manifest.get("stalls", {}).get("digest") == variant.digest)


def _is_in_step(scenario: Scenario) -> bool:
    """Whether each iteration of the system waits for contributions of all workers in it."""
    choices = compose(scenario.system, scenario.modules).choices
    synchronization, exchange = choices["synchronization"], choices["exchange"]
    if exchange.kind == "parameter_server":
        return not exchange.parameters.asynchronous  # type: ignore[attr-defined]
    lag = synchronization.implementation.lag(synchronization.parameters)  # type: ignore[attr-defined]
    return exchange.kind == "ring_allreduce" or lag == 0
