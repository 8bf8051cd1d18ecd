"""`dlion calibrate network` and `node`: a scenario's network from files or measurements."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dlion_sim.cli.conventions import FAILED, INTERRUPTED
from dlion_sim.cli.options import (
    Attached,
    BlockFile,
    CaFile,
    CertificateFile,
    Delays,
    KeyFile,
    Listen,
    ListenFd,
    Overrides,
    Peers,
    Quiet,
    SecretFile,
    Silence,
    StartWithin,
    addresses_in,
    check_new,
    identity_in,
    listener_of,
    seconds_in,
    write_block,
)
from dlion_sim.cli.scenario_runs import chosen
from dlion_sim.errors import InputError

if TYPE_CHECKING:
    from dlion_sim.calibration import Outcome, Pair, PathFound

_TO_FILL_IN = "add the machines"
Seconds = Annotated[float, typer.Option(help="Seconds for which each path is saturated.", min=0.1)]


def network(
    output: BlockFile,
    bandwidths: Annotated[
        Path | None,
        typer.Argument(
            help="A CSV matrix of bandwidths, or a folder of iperf3 results, A-to-B.json.", show_default=False
        ),
    ] = None,
    rtt: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A CSV matrix of round-trip times; by default iperf3's.", show_default=False),
    ] = None,
    local: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Measure between N nodes on this machine, as a trial.", min=2, show_default=False
        ),
    ] = None,
    emulate: Annotated[
        str | None,
        typer.Option(
            metavar="SCENARIO",
            help="Measure between the clouds of a scenario, emulated by Mininet. Needs root.",
            show_default=False,
        ),
    ] = None,
    overrides: Overrides = [],  # noqa: B006  (only read)
    seconds: Seconds = 3.0,
    quiet: Quiet = False,
) -> None:
    """Make a `cluster` from files, or one and a `network` from measurements between nodes (`dlion calibrate node` in
    each place)."""
    wanted = {"BANDWIDTHS": bandwidths, "--local": local, "--emulate": emulate}
    ways = [name for name, way in wanted.items() if way is not None]
    if len(ways) != 1:
        problem = f"does not go with {ways[0]}" if ways else "is missing"
        raise InputError(problem, file=ways[1] if ways else "BANDWIDTHS", allowed=f"one of {', '.join(wanted)}")
    if rtt is not None and bandwidths is None:
        raise InputError(f"does not go with {ways[0]}", file="--rtt", allowed="BANDWIDTHS")
    if overrides and emulate is None:
        raise InputError(f"does not go with {ways[0]}", file="--set", allowed="--emulate")
    if bandwidths is not None:
        _from_files(bandwidths, rtt, output, quiet=quiet)
        return
    check_new(*_written(output))
    from dlion_sim.interrupts import Interrupts

    with Interrupts() as interrupts:
        if emulate is not None:
            from dlion_sim.emulation import check_requirements, measure_emulated

            check_requirements()
            with chosen(emulate, overrides, None) as (scenario, _):
                outcome = measure_emulated(scenario, output, seconds=seconds, interrupted=interrupts.asked)
        else:
            from dlion_sim.calibration import measure_by_processes
            from dlion_sim.live import on_loopback

            names = [f"node-{rank}" for rank in range(local or 0)]
            outcome = measure_by_processes(
                on_loopback(len(names)), names, output, seconds=seconds, interrupted=interrupts.asked
            )
    _exit_unless_complete(outcome)
    if not quiet:
        about = [line.removeprefix("# ") for line in output.read_text().splitlines() if line.startswith("# ")]
        print(*about[1:], _written_line(*_written(output)), sep="\n")


def node(
    rank: Annotated[int, typer.Option(help="Number of this node. Node 0 coordinates, and writes the result.")],
    peers: Peers,
    secret_file: SecretFile = None,
    ca: CaFile = None,
    certificate: CertificateFile = None,
    key: KeyFile = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="For node 0: the YAML file to write.", show_default=False),
    ] = None,
    names: Annotated[
        str | None,
        typer.Option(help="For node 0: names of the nodes' places, in order.", show_default=False),
    ] = None,
    together: Annotated[
        bool,
        typer.Option("--together", help="For node 0: measure pairs without a common host at the same time."),
    ] = False,
    seconds: Seconds = 3.0,
    listen: Listen = None,
    start_within: StartWithin = 60.0,
    silence: Silence = 30.0,
    delays: Delays = None,
    listen_fd: ListenFd = None,
    attached: Attached = False,
    quiet: Quiet = False,
) -> None:
    """Measure the paths to other places as one node of a mesh: round trips, and TCP throughput in both directions.

    All nodes need the same --seconds and version, and a common secret or CA. Node 0 writes the `cluster` and
    the `network`.
    """
    from dlion_sim.calibration import block_of, check_names, csv, matrices, measure_mesh, network_of
    from dlion_sim.live import MeshConfig, Timeouts

    addresses = addresses_in(peers)
    called = names.split(",") if names else [f"node-{each}" for each in range(len(addresses))]
    config = MeshConfig(
        rank,
        addresses,
        identity_in(secret_file, ca, certificate, key, rank),
        listen=listener_of(listen, listen_fd),
        timeouts=Timeouts(start=start_within, silence=silence),
        delays=seconds_in(delays),
        attached=attached,
    )
    config.check_places(len(addresses))
    if rank == 0:
        if output is None:
            raise InputError("is missing", file="--output", allowed="the YAML file that node 0 is to write")
        check_new(*_written(output))
        check_names(called, len(addresses))
    elif output or names or together:
        given = "--output" if output else "--names" if names else "--together"
        raise InputError(f"is for node 0, and this is node {rank}", file=given)
    lines = []

    def observe(pair: Pair, path: PathFound) -> None:
        lines.append(_line(called[pair[0]], called[pair[1]], path))
        if not quiet:
            print(lines[-1], flush=True)

    outcome = measure_mesh(config, seconds=seconds, together=together, observe=observe)
    _exit_unless_complete(outcome)
    if output is None:
        return
    files = _written(output)
    from dlion_sim.results.atomic import write

    found = matrices(called, outcome.paths)
    for file, matrix in zip(files[1:], found, strict=True):
        write(file, csv(matrix).encode())
    block = block_of(*found) | network_of(outcome.paths)
    write_block(output, block, f"the network between {len(called)} nodes; {_TO_FILL_IN}", lines)
    if not quiet:
        print(_written_line(*files))


def _from_files(bandwidths: Path, rtt: Path | None, output: Path, *, quiet: bool) -> None:
    check_new(output)
    from dlion_sim.calibration import network_block

    block = network_block(bandwidths, rtt)
    sources = " and ".join(file.name for file in (bandwidths, rtt) if file is not None)
    write_block(output, block, f"the network in {sources}; {_TO_FILL_IN}")
    if not quiet:
        names = ", ".join(cloud["name"] for cloud in block["cluster"]["clouds"])
        print(f"clouds: {names}\n{_written_line(output)}")


def _written(output: Path) -> tuple[Path, ...]:
    """The files of a measurement: the block, and the matrices of bandwidths and round-trip times."""
    return output, *(output.with_name(f"{output.stem}-{what}.csv") for what in ("bandwidth", "rtt"))


def _written_line(*files: Path) -> str:
    return f"written: {', '.join(map(str, files))}"


def _line(sender: str, receiver: str, path: PathFound) -> str:
    from dlion_sim.scenario import BANDWIDTH, DURATION

    bandwidth, least, median = (
        BANDWIDTH.format(float(f"{path.bps:.4g}")),
        *(DURATION.format(float(f"{seconds:.3g}")) for seconds in (path.round_trip, path.median_round_trip)),
    )
    return (
        f"{sender} to {receiver}: {bandwidth}; there and back {least} at least, {median} in the median; "
        f"{path.acknowledgements:.3g} acknowledgements a frame"
    )


def _exit_unless_complete(outcome: Outcome) -> None:
    if outcome.interrupted:
        raise typer.Exit(INTERRUPTED)
    if outcome.failed is not None:
        print(f"dlion: nothing is written: {outcome.failed}", file=sys.stderr)
        raise typer.Exit(FAILED)
