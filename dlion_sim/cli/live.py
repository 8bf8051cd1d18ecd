"""The commands of real nodes: all nodes on this machine, also over an emulated network, one node, and gathering."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from dlion_sim.cli.conventions import INTERRUPTED
from dlion_sim.cli.options import (
    Attached,
    CaFile,
    CertificateFile,
    ComputesOn,
    Delays,
    Fifo,
    Force,
    KeyFile,
    Listen,
    ListenFd,
    Output,
    Overrides,
    Peers,
    Quiet,
    ScenarioName,
    ScenarioNameIfAny,
    SecretFile,
    StartWithin,
    addresses_in,
    identity_in,
    listener_of,
    seconds_in,
)
from dlion_sim.cli.scenario_runs import chosen, exit_with_status, report
from dlion_sim.errors import InputError

Pacing = Annotated[
    bool,
    typer.Option(help="Delay computations to the speed of the scenario's machines."),
]
Silence = Annotated[
    float | None,
    typer.Option(
        help="Seconds of silence after which a peer is lost; by default availability.silence, or 30.",
        min=0,
    ),
]


def live(
    scenario: ScenarioName,
    overrides: Overrides = [],  # noqa: B006  (only read)
    output: Output = None,
    device: ComputesOn = "auto",
    pacing: Pacing = True,
    start_within: StartWithin = 60.0,
    silence: Silence = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Run a scenario in real time over TLS, with a process for each worker on this machine.

    Ctrl-C ends the run early; its results stay readable.
    """
    from dlion_sim.cli.progress import clock_bar
    from dlion_sim.interrupts import Interrupts
    from dlion_sim.live import Timeouts, run_locally

    with (
        chosen(scenario, overrides, output, "live") as (loaded, folder),
        Interrupts() as interrupts,
        clock_bar(loaded, quiet=quiet) as observe,
    ):
        done = run_locally(
            loaded,
            folder,
            device=device,
            paced=pacing,
            timeouts=Timeouts.of(loaded, start=start_within, silence=silence),
            force=force,
            interrupted=interrupts.asked,
            observe=observe,
        )
    report(done, quiet=quiet)


def node(
    scenario: ScenarioName,
    rank: Annotated[int, typer.Option(help="Number of this participant: workers from 0 on, then parameter servers.")],
    peers: Peers,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder for the node's part, rank-RANK.")],
    secret_file: SecretFile = None,
    ca: CaFile = None,
    certificate: CertificateFile = None,
    key: KeyFile = None,
    listen: Listen = None,
    overrides: Overrides = [],  # noqa: B006  (only read)
    device: ComputesOn = "auto",
    pacing: Pacing = True,
    start_within: StartWithin = 60.0,
    silence: Silence = None,
    delays: Delays = None,
    join: Annotated[
        bool,
        typer.Option("--join", help="Join a run in progress; needs `availability`."),
    ] = False,
    incarnation: Annotated[
        int | None,
        typer.Option(help="Number of earlier nodes of this rank; by default, that of their parts in --output.", min=0),
    ] = None,
    stand_by: Annotated[
        bool, typer.Option("--stand-by", hidden=True, help="Start when standard input has the run's start time.")
    ] = False,
    listen_fd: ListenFd = None,
    attached: Attached = False,
    quiet: Quiet = False,
) -> None:
    """Run one participant of a live run, in real time over TLS.

    All nodes need the same scenario, overrides and version, and a common secret or CA. `dlion gather` makes a run
    folder from their parts.
    """
    from dlion_sim.live import (
        BEGUN,
        LEFT,
        STANDS_BY,
        NobodyReachedError,
        NodeConfig,
        Timeouts,
        part_folder,
        run_node,
        status_line,
    )
    from dlion_sim.own_code import own_errors_told
    from dlion_sim.results.run_folder import holds_run
    from dlion_sim.scenario import find, load

    say = _speaker(attached=attached, quiet=quiet)
    file = find(scenario)
    loaded = load(file, overrides)
    config = NodeConfig(
        rank=rank,
        addresses=addresses_in(peers),
        listen=listener_of(listen, listen_fd),
        identity=identity_in(secret_file, ca, certificate, key, rank),
        output=output,
        device=device,
        paced=pacing,
        timeouts=Timeouts.of(loaded, start=start_within, silence=silence),
        delays=seconds_in(delays),
        attached=attached,
        joins=join,
        incarnation=incarnation,
        told=partial(_standing_by, partial(say, status_line(rank, STANDS_BY))) if stand_by else None,
        left=partial(say, status_line(rank, LEFT)),
        begun=partial(say, status_line(rank, BEGUN)),
    )
    try:
        with own_errors_told(loaded.references):
            done = run_node(loaded, config)
    except InputError as error:
        has_part = incarnation is None and holds_run(part_folder(output, rank))
        if isinstance(error, NobodyReachedError) and has_part:
            say(status_line(rank, f"over for this node, whose earlier part stays: {error}"))
            return
        raise error.within(file) from None
    if done is None:
        say(status_line(rank, "interrupted before the begin"))
        raise typer.Exit(INTERRUPTED)
    summary = done.summary or {}
    say(status_line(rank, f"{summary['status']} ({summary['stopped_by']}), part: {done.folder}"))
    exit_with_status(summary)


def gather(
    parts: Annotated[Path, typer.Argument(help="The folder with rank-0, rank-1, ...", show_default=False)],
    output: Annotated[Path, typer.Argument(help="The run folder to write.", show_default=False)],
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Make one run folder from the parts of a run's nodes."""
    from dlion_sim.live import gather

    report(gather(parts, output, force=force), quiet=quiet)


def _speaker(*, attached: bool, quiet: bool) -> Callable[[str], None]:
    """Prints lines to standard output, which all other output goes past if the node is attached: into its log."""
    if quiet:
        return lambda line: None
    if not attached:
        return partial(print, flush=True)
    output = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return partial(print, file=output, flush=True)


def _standing_by(say: Callable[[], None]) -> float:
    """Say so, and wait for the time of the run's start; the process ends with standard input."""
    say()
    line = sys.stdin.readline()
    if not line:
        raise typer.Exit(INTERRUPTED)
    return float(line)


Start = Annotated[bool, typer.Option("--start", help="Run the scenario while the command line is open.")]


def emulate(
    scenario: ScenarioNameIfAny = None,
    overrides: Overrides = [],  # noqa: B006  (only read)
    output: Output = None,
    device: ComputesOn = "auto",
    pacing: Pacing = True,
    fifo: Fifo = False,
    start_within: StartWithin = 60.0,
    silence: Silence = None,
    force: Force = False,
    quiet: Quiet = False,
    clean: Annotated[bool, typer.Option("--clean", help="Only remove the leftovers of killed emulations.")] = False,
    cli: Annotated[
        bool, typer.Option("--cli", help="Open Mininet's command line on the network, without a run.")
    ] = False,
    start: Start = False,
) -> None:
    """Run a scenario in real time over its network, emulated on this machine. Needs root.

    Ctrl-C ends the run early; its results stay readable. The next emulation, or --clean, removes what a killed one
    left.
    """
    from dlion_sim.cli.progress import clock_bar
    from dlion_sim.emulation import check_requirements, remove_leftovers
    from dlion_sim.emulation import emulate as emulate_run
    from dlion_sim.interrupts import Interrupts
    from dlion_sim.live import Timeouts

    if start and not cli:
        raise InputError("--start requires --cli", file="dlion emulate", allowed="neither, to run the scenario")
    check_requirements(paced=pacing, by_hand=cli)
    if clean:
        count = remove_leftovers()
        if not quiet:
            print(f"removed the leftovers of {count} emulation{'' if count == 1 else 's'}")
        return
    if scenario is None:
        raise InputError("has no scenario", file="dlion emulate", allowed="a YAML file, a name, or --clean")
    meanwhile = None
    if cli:
        from dlion_sim.emulation.console import obey, open_console

        if not start:
            with chosen(scenario, overrides, output) as (loaded, _):
                open_console(loaded, fair=not fifo)
            return
        meanwhile = obey
    with (
        chosen(scenario, overrides, output, "emulate") as (loaded, folder),
        Interrupts() as interrupts,
        clock_bar(loaded, quiet=quiet or cli) as observe,
    ):
        done = emulate_run(
            loaded,
            folder,
            device=device,
            paced=pacing,
            fair=not fifo,
            timeouts=Timeouts.of(loaded, start=start_within, silence=silence),
            force=force,
            interrupted=interrupts.asked,
            observe=observe,
            meanwhile=meanwhile,
        )
    report(done, quiet=quiet)
