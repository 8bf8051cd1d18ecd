"""`dlion stalls`: what stalls a scenario's workers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from dlion_sim.cli.conventions import INTERRUPTED, why_no_exchange
from dlion_sim.cli.options import Overrides, Quiet, ScenarioName
from dlion_sim.cli.scenario_runs import chosen

if TYPE_CHECKING:
    from dlion_sim.analysis.stalls.attribution import Stalls
    from dlion_sim.studies.stalls import StallStudy

_SURE = 0.05
"""Coefficient of variation of iteration times above which a note is printed."""
_NAMES = {
    "unlimited-paths": "WAN paths without a limit",
    "no-round-trips": "no round-trip times",
    "unlimited-nics": "NICs without a limit",
    "equal-machines": "equal machines",
    "free-input": "samples always ready",
    "no-outages": "no outages",
}
_LITTLE = 0.0005
"""Minimum share of a worker's time of kinds of stalls that are shown."""
_ITERATIONS = 60
_LINKS = 3


def stalls(
    scenario: ScenarioName,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="The folder for the runs and results.", show_default=False),
    ],
    overrides: Overrides = [],  # noqa: B006  (only read)
    iterations: Annotated[
        int, typer.Option(help="Iterations of each worker in each run; the first 5 do not count.", min=10)
    ] = _ITERATIONS,
    links: Annotated[
        int,
        typer.Option(
            help="Number of paths, NICs and machines, those waited for most, to simulate twice as fast, one by one.",
            min=0,
        ),
    ] = _LINKS,
    force: Annotated[bool, typer.Option("--force", help="Replace runs of another scenario in the folder.")] = False,
    quiet: Quiet = False,
) -> None:
    """Show the stalls of workers: what they wait for, over which link, and the speed without each cause.

    Simulates the scenario several times, with one more cause of stalls each time. The same command continues after
    Ctrl-C.
    """
    from dlion_sim.cli.progress import progress_bar
    from dlion_sim.interrupts import Interrupts
    from dlion_sim.studies.stalls import explain

    with chosen(scenario, overrides, output) as (loaded, folder), Interrupts() as interrupts:
        explained = explain(
            loaded,
            folder,
            iterations=iterations,
            links=links,
            observing=lambda variant: progress_bar(variant, quiet=quiet, scored=False),
            force=force,
            interrupted=interrupts.asked,
        )
    if explained is None:
        if not quiet:
            print(f"interrupted; the same command continues in {output}")
        raise typer.Exit(INTERRUPTED)
    if not quiet:
        Console().print(_report(explained))


def _report(explained: StallStudy) -> RenderableType:
    parts = [_workers(explained.base), _differences(explained.results), _what_if(explained.results)]
    if explained.results["faster"]:
        parts.append(_twice_as_fast(explained.results))
    lines = [*_lines(explained), f"details: {explained.document}", f"figure: {explained.figure}"]
    return Group(*parts, *map(Text, lines))


def _workers(stalls: Stalls) -> Table:
    """Shares of each worker's time by kind of stall."""
    from dlion_sim.analysis.stalls.attribution import KINDS
    from dlion_sim.results import participants

    names, shares = participants(stalls.run.manifest), stalls.shares
    kinds = [kind for kind in KINDS if shares[kind].max() >= _LITTLE]
    table = _table("where each worker's time goes", "worker", *kinds, "iteration (s)")
    for worker, count in stalls.iterations.items():
        took = stalls.totals[worker] / count if count else math.nan
        table.add_row(names[worker], *(f"{shares[kind][worker]:.1%}" for kind in kinds), _seconds(took))
    return table


def _differences(results: dict[str, Any]) -> Table:
    table = _table("what an iteration takes longer", "stall", "seconds", "share of time", "slowdown")
    for kind, found in results["differencing"].items():
        table.add_row(kind, _seconds(found["seconds"]), _percent(found["share"]), _percent(found["slowdown"]))
    return table


def _what_if(results: dict[str, Any]) -> Table:
    loss = f"loss {results['loss']['training_loss']:.3g} at (s)"
    table = _table("what if", "there were", "iteration (s)", "saved", loss)
    reached, taken = results["loss"]["seconds"], results["iteration_seconds"]
    whole = [*taken][-1]
    table.add_row("nothing else", _seconds(taken[whole]["mean"]), "", _seconds(reached[whole]))
    for name, found in results["counterfactuals"].items():
        took = found["iteration_seconds"]["mean"]
        table.add_row(_NAMES[name], _seconds(took), _percent(found["saved_share"]), _seconds(reached[name]))
    return table


def _twice_as_fast(results: dict[str, Any]) -> Table:
    table = _table("what if one were twice as fast", "waited for", "iteration (s)", "iterations", "stall")
    for name, found in results["faster"].items():
        took = _seconds(found["iteration_seconds"]["mean"])
        table.add_row(name, took, _change(found["more_iterations"]), _change(-found["less_stalled"]))
    return table


def _lines(explained: StallStudy) -> Iterator[str]:
    results = explained.results
    yield results["summary"]
    yield results["agreement"]
    if "churn" in results["differencing"] and not explained.base.seconds["churn"].any():
        yield "no worker was down in the counted iterations; try more: --iterations"
    varying = {name: found["variation"] for name, found in results["iteration_seconds"].items()}
    if (most := max(varying.values())) > _SURE:
        yield f"iterations of the workers vary by up to {most:.0%} (coefficient of variation)"
    if not results["in_step"]:
        yield "not in step: iterations that are faster may also be staler, so compare the times to the same loss"
    if alone := explained.base.run.without_exchange:
        yield f"never exchanged anything: {', '.join(alone)}; {why_no_exchange(explained.base.run)}"


def _table(title: str, first: str, *quantities: str) -> Table:
    table = Table(first, title=title, title_justify="left", box=SIMPLE_HEAD)
    for quantity in quantities:
        table.add_column(quantity, justify="right")
    return table


def _seconds(value: float | None) -> str:
    return "-" if value is None or math.isnan(value) else f"{round(value, 9) + 0.0:.4g}"  # no -0


def _change(share: float) -> str:
    return "-" if math.isnan(share) else f"{round(share, 3) + 0.0:+.1%}"


def _percent(share: float) -> str:
    return "-" if math.isnan(share) else f"{round(share, 4) + 0.0:.1%}"
