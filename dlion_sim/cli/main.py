"""The `dlion` command: parse, call, print."""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Callable
from typing import Annotated

import typer
from rich.console import Console

from dlion_sim import __version__
from dlion_sim.cli import (
    calibrate,
    compare,
    live,
    plot,
    recommend,
    report,
    reproduce,
    run,
    stalls,
    sweep,
    validate,
)
from dlion_sim.cli.conventions import BAD_INPUT, FAILED, with_options
from dlion_sim.cli.options import Hinting
from dlion_sim.errors import InputError, OwnCodeError

app = typer.Typer(
    help="Simulate decentralized deep learning on many small clouds: real gradients, modelled machines and WAN links.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_NO_CACHE = "cannot cache function"
"""Part of numba's message if it cannot write its cache, for which it has no exception class."""


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
    """Handle the options of the command itself."""


@app.command()
def schema() -> None:
    """Print the JSON Schema of scenarios, for editors and checks."""
    from dlion_sim.protocol.schema import scenario_schema

    print(json.dumps(scenario_schema(), indent=2))


def _listing(name: str) -> Callable[[], None]:
    def print_listing() -> None:
        from dlion_sim.cli import listings

        Console().print(*getattr(listings, name)())

    return print_listing


_LISTINGS = {
    "systems": "List the systems and choices, with every parameter and its default.",
    "models": "List the models, with their sizes and costs per sample.",
    "datasets": "List the data sets, with their sizes and sources.",
    "devices": "List the devices, with their speeds and sources.",
    "catalogs": "List the catalogs of cloud instances, with their prices and sources.",
    "scenarios": "List the shipped scenarios and sweeps; each can be run by its name.",
}
for name, about in _LISTINGS.items():
    app.command(name, help=about)(_listing(name))
for command in (
    run.run,
    live.live,
    live.node,
    live.gather,
    live.emulate,
    validate.validate,
    stalls.stalls,
    compare.compare,
    report.export,
    report.report,
    report.watch,
    sweep.sweep,
    reproduce.reproduce,
    recommend.recommend,
):
    app.command(cls=Hinting)(command)
app.add_typer(plot.plot, name="plot")
app.add_typer(calibrate.calibrate, name="calibrate")


def main(command: typer.Typer = app) -> None:
    """Run a command. Faults in the input end it with a line each, failures of the disk with one line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # Names of folders may be invalid text.
    logging.basicConfig(format="dlion: %(message)s")
    try:
        command()
    except InputError as error:
        for fault in (error, *error.further):
            print(f"dlion: {with_options(str(fault))}", file=sys.stderr)
        sys.exit(BAD_INPUT)
    except RuntimeError as error:
        if _NO_CACHE not in str(error):
            raise
        problem = "compiled kernels can be cached neither beside the package nor in the user's cache"
        print(f"dlion: {problem}; allowed: NUMBA_CACHE_DIR=DIR, a folder that only you can write to", file=sys.stderr)
        sys.exit(BAD_INPUT)
    except OwnCodeError as error:
        print(f"dlion: {error}\n{error.trace}", file=sys.stderr)
        sys.exit(FAILED)
    except OSError as error:
        print(f"dlion: {error.filename or 'the run folder'}: {error.strerror or error}", file=sys.stderr)
        sys.exit(FAILED)
