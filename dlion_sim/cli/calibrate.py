"""`dlion calibrate`: measures the machines and network of a scenario."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from dlion_sim.cli import network
from dlion_sim.cli.fitting import Fitted
from dlion_sim.cli.options import (
    BlockFile,
    ComputesOn,
    Hinting,
    Overrides,
    Quiet,
    ScenarioNameIfAny,
    check_new,
    seconds_of,
    write_block,
)
from dlion_sim.errors import InputError

if TYPE_CHECKING:
    from dlion_sim.calibration import Calibration
    from dlion_sim.scenario import Scenario

calibrate = typer.Typer(no_args_is_help=True)
calibrate.command(cls=Hinting)(network.network)
calibrate.command(cls=Hinting)(network.node)

_FAR_OFF = 0.2
"""Relative error above which the fitted line is reported as unsuitable."""


@calibrate.callback()
def root() -> None:
    """Measure your own machines and network, and write them as YAML for a scenario."""


@calibrate.command(cls=Hinting)
def scenario(
    links: Annotated[
        Path,
        typer.Argument(
            help="A CSV file with the columns from,to,bandwidth,rtt, or bandwidth_mbps,rtt_ms; or the YAML "
            "of `dlion calibrate network` or `node`, or a scenario, whose `cluster` and `network` are taken.",
            show_default=False,
        ),
    ],
    output: BlockFile,
    dataset: Annotated[str, typer.Option(help="The data set; see `dlion datasets`.", show_default=False)],
    model: Annotated[str, typer.Option(help="The model; see `dlion models`.", show_default=False)],
    sites: Annotated[
        list[str],
        typer.Option(
            "--site",
            metavar="NAME=MACHINE",
            help="A site's machine: a device of `dlion devices` or a number of cores, e.g. gpu1=a100, "
            "lab=8cores, edge=2*t4; repeatable.",
            show_default=False,
        ),
    ] = [],  # noqa: B006  (only read)
    duration: Annotated[
        str | None, typer.Option(help="Virtual time of a run, e.g. 6h; by default 10 min.", show_default=False)
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Write a whole scenario from measured links and the sites' machines; comments mark what was assumed.

    A direction without a row or value is assumed to be like the opposite one.
    """
    check_new(output)
    seconds = None if duration is None else seconds_of(duration, "--duration")
    from dlion_sim.calibration import own_scenario
    from dlion_sim.results.atomic import write

    text = own_scenario(links, sites, dataset=dataset, model=model, duration=seconds, name=output.stem)
    write(output, text.encode())
    if not quiet:
        print(f"written: {output}; {text.count('# assumed')} lines are assumed, see their comments")


@calibrate.command(cls=Hinting)
def compute(
    output: BlockFile,
    scenario: ScenarioNameIfAny = None,
    model: Annotated[str | None, typer.Option(help="A model, in place of a scenario.", show_default=False)] = None,
    dataset: Annotated[str | None, typer.Option(help="The data set for it.", show_default=False)] = None,
    overrides: Overrides = [],  # noqa: B006  (only read)
    device: ComputesOn = "auto",
    quiet: Quiet = False,
) -> None:
    """Measure gradients and messages of a model on this machine: `workload.compute_time`, and the number of cores."""
    check_new(output)
    chosen, file = _workload(scenario, model, dataset, overrides)
    from dlion_sim.calibration import calibrate as measured
    from dlion_sim.own_code import own_errors_told
    from dlion_sim.scenario import named

    try:
        with own_errors_told(chosen.references):
            result = measured(chosen, device)
    except InputError as error:
        raise error.within(file) from None
    workload = f"{named(chosen.workload.model)[0]} on {named(chosen.workload.dataset)[0]}"
    about = f"{workload}; R2 {result.fit.r2:.4f}, off by {result.fit.worst:.1%} at most"
    write_block(output, result.block, about)
    if not quiet:
        Console().print(*_report(result, workload), Text(f"written: {output}"), sep="\n")


def _workload(
    scenario: str | None, model: str | None, dataset: str | None, overrides: list[str]
) -> tuple[Scenario, Path | None]:
    """The scenario to measure, and its file."""
    from dlion_sim.scenario import find, from_data, load

    if scenario is not None:
        if model or dataset:
            raise InputError("does not go with a scenario", file="--model" if model else "--dataset", allowed="--set")
        file = find(scenario)
        return load(file, overrides), file
    if model is None or dataset is None:
        raise InputError("is missing", file="SCENARIO", allowed="a scenario, or --model and --dataset")
    data = {
        "name": "calibration",
        "iterations": 1,
        "workload": {"model": model, "dataset": dataset},
        "cluster": {"clouds": [{"name": "here", "workers": [{}]}]},
        "system": "baseline",
    }
    return from_data(data, overrides), None


def _report(result: Calibration, workload: str) -> Iterator[Fitted | Text]:
    headings = ["batch size", "measured (ms)", "fitted (ms)", "off by"]
    rows = []
    for size, seconds in result.seconds.items():
        fitted = result.fit.seconds(size)
        rows.append([f"{size}", f"{1e3 * seconds:.4g}", f"{1e3 * fitted:.4g}", f"{fitted / seconds - 1:+.1%}"])
    time = result.block["workload"]["compute_time"]
    yield Fitted(headings, rows, title=f"A gradient: {workload}", numbers=headings)
    yield Text(
        f"alpha {time['alpha']}, beta {time['beta']}, compute {result.cores:g} cores: "
        f"R2 {result.fit.r2:.4f}, off by {result.fit.worst:.1%} at most"
    )
    yield Text(f"a message: {time['per_message']}, between two nodes on this machine")
    if result.fit.worst > _FAR_OFF:
        yield Text("These times do not fit a line: measure again on an idle machine, or around another batch size.")
