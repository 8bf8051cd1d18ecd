"""`dlion watch DIR`: runs in progress, as a page that follows them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dlion_sim.cli.conventions import INTERRUPTED
from dlion_sim.cli.options import Quiet, Target
from dlion_sim.errors import InputError


def watch(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A run folder, or a sweep's.", show_default=False)],
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Where on this machine; 0: any port that is free.")
    ] = 8642,
    target: Target = None,
    quiet: Quiet = False,
) -> None:
    """Serve a page that shows runs as they go, to browsers on this machine (needs the extra report); Ctrl-C ends it.

    It only reads the folder, and may begin before the runs do, or be started again at any time.
    """
    from dlion_sim.interrupts import Interrupts
    from dlion_sim.report import PageServer, Watched, plotly_script

    if not folder.is_dir():
        raise InputError("is no folder", file=folder, allowed="a run folder, or one that runs are written to")
    plotly_script()  # which may be missing
    with PageServer(Watched(folder, target), port) as server, Interrupts() as interrupts:
        if not quiet:
            print(f"watch: {server.address}", flush=True)
        while not interrupts.asked():
            server.handle_request()
    raise typer.Exit(INTERRUPTED)
