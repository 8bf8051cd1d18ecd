"""Arguments and options that several commands have."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer


class Device(StrEnum):
    """Where gradients are computed."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"


ComputesOn = Annotated[Device, typer.Option(help="Where gradients are computed.")]
_Scenario = typer.Argument(
    help="A scenario YAML, or the name of one that ships (`dlion scenarios`).", show_default=False
)
ScenarioName = Annotated[str, _Scenario]
ScenarioNameIfAny = Annotated[str | None, _Scenario]
Overrides = Annotated[
    list[str],
    typer.Option("--set", metavar="PATH=VALUE", help="Override a value, e.g. --set system=baseline; repeatable."),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="The run folder; by default a new one in results/runs.", show_default=False),
]
Force = Annotated[bool, typer.Option("--force", help="Replace the run that the output folder holds.")]


def _quieten(context: typer.Context, quiet: bool) -> bool:
    """Let downloads of data sets, wherever they come up, be quiet for as long as the command lasts."""
    if quiet:
        import pooch

        logger = pooch.get_logger()
        context.call_on_close(partial(setattr, logger, "disabled", logger.disabled))
        logger.disabled = True
    return quiet


Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="Print nothing but errors: no progress, no table.", callback=_quieten),
]
Fifo = Annotated[
    bool,
    typer.Option("--fifo", help="At each link one queue for all, as in simple routers, instead of one for each flow."),
]
Target = Annotated[
    str | None,
    typer.Option(
        metavar="VALUE",
        help="The accuracy, e.g. 90 or 0.9, or other metric whose time is told; by default the scenario's own target, "
        "or else the best that half of the runs reached.",
        show_default=False,
    ),
]
