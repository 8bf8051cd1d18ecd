"""`dlion calibrate scenario`: a scenario from measured links and a list of machines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dlion_sim.cli.options import BlockFile, Quiet, check_new, seconds_of


def scenario(
    links: Annotated[
        Path,
        typer.Argument(
            help="A CSV file with the columns from,to,bandwidth,rtt, or bandwidth_mbps,rtt_ms; or the YAML "
            "of `dlion calibrate network` or `node`, or a scenario.",
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
