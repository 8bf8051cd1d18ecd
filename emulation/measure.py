"""Whether the links of a scenario's emulated network carry what the scenario states, and take as long."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Annotated

import typer
from rich.console import Console

from dlion_sim.cli.conventions import FAILED, INTERRUPTED
from dlion_sim.cli.main import main
from dlion_sim.cli.options import Fifo, Overrides, ScenarioName
from dlion_sim.cli.scenario_runs import chosen
from dlion_sim.emulation import check_requirements
from dlion_sim.errors import InputError
from dlion_sim.interrupts import Interrupts
from dlion_sim.scenario import Scenario
from emulation.measurement import Measurement, report

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def measure(
    scenario: ScenarioName,
    overrides: Overrides = [],  # noqa: B006  (typer reads it, nobody writes it)
    seconds: Annotated[float, typer.Option(help="For how long each link is filled, at least.", min=0.1)] = 2.0,
    tolerance: Annotated[float, typer.Option(metavar="PERCENT", help="By how much a link may be off.", min=0)] = 5.0,
    fifo: Fifo = False,
) -> None:
    """Measure each link of a scenario's emulated network against what the scenario states for time 0. Needs root.

    Exits with 1 where one is off. Ctrl-C ends it after the link at hand, with what was measured so far.
    """
    check_requirements(by_hand=True)
    with chosen(scenario, overrides, None) as (loaded, _), Interrupts() as interrupts:
        found = _measured(loaded, seconds, fair=not fifo, interrupted=interrupts.asked)
    Console().print(report(found, tolerance / 100))
    if interrupts.asked():
        raise typer.Exit(INTERRUPTED)
    if any(each.is_off(tolerance / 100) for each in found):
        raise typer.Exit(FAILED)


def _measured(
    scenario: Scenario, seconds: float, *, fair: bool, interrupted: Callable[[], bool]
) -> Sequence[Measurement]:
    from dlion_sim.emulation.network import network_of  # It imports Mininet, which is an extra.
    from emulation.endpoints import to_measure

    found = []
    with network_of(scenario, fair=fair) as network:
        wanted = list(to_measure(network, scenario.cluster))
        if not wanted:
            raise InputError("it has a single machine, and so no link", path="cluster", allowed="two or more")
        for number, each in enumerate(wanted, 1):
            if interrupted():
                break
            print(f"{number} of {len(wanted)}: {each.name}", file=sys.stderr)
            found.append(each.measure(network, seconds))
    return found


if __name__ == "__main__":
    main(app)
