"""The `dlion` command: parse, call, print."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from dlion_sim import __version__
from dlion_sim.cli import compare, emulation, export, live, plot, sweep, validate
from dlion_sim.cli.conventions import BAD_INPUT, FAILED, INTERRUPTED, RUNS
from dlion_sim.errors import InputError

app = typer.Typer(
    help="Simulate decentralized deep learning on many small clouds: real gradients, modelled machines and WAN links.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Device(StrEnum):
    """Where gradients are computed."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"


def _print_version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Take the options of the command itself."""


@app.command()
def run(
    scenario: Annotated[
        str, typer.Argument(help="A scenario YAML, or the name of one that ships (`dlion scenarios`).")
    ],
    overrides: Annotated[
        list[str],
        typer.Option("--set", metavar="PATH=VALUE", help="Override a value, e.g. --set system=baseline; repeatable."),
    ] = [],  # noqa: B006  (typer reads it, nobody writes it)
    output: Annotated[
        Path | None, typer.Option(help="The run folder; by default a new one in results/runs.", show_default=False)
    ] = None,
    device: Annotated[Device, typer.Option(help="Where gradients are computed.")] = Device.AUTO,
    force: Annotated[bool, typer.Option("--force", help="Replace the run that the output folder holds.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar and no table.")] = False,
) -> None:
    """Run a scenario in virtual time and write its run folder.

    Ctrl-C ends the run early; what was computed stays readable.
    """
    # The heavy imports wait until there is something to run, so that --help answers at once.
    from dlion_sim.cli.interrupts import Interrupts
    from dlion_sim.cli.progress import progress_bar
    from dlion_sim.cli.tables import run_report
    from dlion_sim.figures import plot_accuracy
    from dlion_sim.results import free_folder
    from dlion_sim.results.run_folder import ACCURACY
    from dlion_sim.scenario import find, load
    from dlion_sim.simulation import simulate

    file = find(scenario)
    loaded = load(file, overrides)
    system = loaded.system.name.replace(":", ".")
    folder = output or free_folder(RUNS / f"{loaded.name}-{system}-seed{loaded.seed}")
    try:
        with Interrupts() as interrupts, progress_bar(loaded, quiet=quiet) as observe:
            done = simulate(
                loaded, folder, device=device.value, force=force, interrupted=interrupts.asked, observe=observe
            )
    except InputError as error:
        raise error.within(file) from None
    plot_accuracy(done, done.folder / ACCURACY)
    if not quiet:
        Console().print(run_report(done))
    if done.manifest["status"] == "interrupted":
        raise typer.Exit(INTERRUPTED)


@app.command()
def schema() -> None:
    """Print the JSON Schema of scenarios, for editors and checks."""
    from dlion_sim.protocol.schema import scenario_schema

    print(json.dumps(scenario_schema(), indent=2))


@app.command()
def systems() -> None:
    """List the systems and choices that there are, with every parameter and its default."""
    from dlion_sim.cli.tables import system_tables

    Console().print(system_tables())


@app.command()
def scenarios() -> None:
    """List the scenarios that ship; each can be run by its name."""
    from dlion_sim.cli.tables import scenario_table

    Console().print(scenario_table())


for command in (
    live.live,
    live.node,
    live.gather,
    emulation.emulate,
    validate.validate,
    compare.compare,
    export.export,
    sweep.sweep,
):
    app.command()(command)
app.add_typer(plot.plot, name="plot")


def main() -> None:
    """Run the command; what the user can mend ends it with one line a fault, what the disk refuses with one line."""
    try:
        app()
    except InputError as error:
        for fault in (error, *error.further):
            print(f"dlion: {fault}", file=sys.stderr)
        sys.exit(BAD_INPUT)
    except OSError as error:
        print(f"dlion: {error.filename or 'the run folder'}: {error.strerror}", file=sys.stderr)
        sys.exit(FAILED)
