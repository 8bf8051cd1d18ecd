"""Mininet's command line on a scenario's network, as `dlion emulate --cli` opens it."""

from __future__ import annotations

import typer

from dlion_sim.cli.emulation import Start, emulate
from dlion_sim.cli.main import main
from dlion_sim.cli.options import Fifo, Force, Output, Overrides, ScenarioName

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def cli(
    scenario: ScenarioName,
    overrides: Overrides = [],  # noqa: B006  (typer reads it, nobody writes it)
    start: Start = False,
    output: Output = None,
    fifo: Fifo = False,
    force: Force = False,
) -> None:
    """Build a scenario's network and open Mininet's command line on it. Needs root.

    `exit`, Ctrl-D and Ctrl-C at the prompt end it, and nothing of the network is left. With --start, the run ends then,
    too, and --output is where it goes.
    """
    emulate(scenario, overrides, output, fifo=fifo, force=force, cli=True, start=start)


if __name__ == "__main__":
    main(app)
