"""Arguments and options that several commands share, and what they stand for."""

from __future__ import annotations

import platform
import socket
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperCommand

from dlion_sim.errors import InputError

if TYPE_CHECKING:
    from dlion_sim.live import Address, Identity


Device = Literal["auto", "cpu", "cuda"]

ComputesOn = Annotated[Device, typer.Option(help="Where gradients are computed.")]
_Scenario = typer.Argument(
    help="A scenario YAML, or the name of a shipped one (`dlion scenarios`).", show_default=False
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
Runs = Annotated[list[Path], typer.Argument(help="Run folders, or folders with runs below.", show_default=False)]
Force = Annotated[bool, typer.Option("--force", help="Replace the run in the output folder.")]


def _quieten(context: typer.Context, quiet: bool) -> bool:
    """Silence downloads of data sets until the command ends."""
    if quiet:
        import pooch

        logger = pooch.get_logger()
        context.call_on_close(partial(setattr, logger, "disabled", logger.disabled))
        logger.disabled = True
    return quiet


Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="Print nothing but errors.", callback=_quieten),
]
Fifo = Annotated[
    bool,
    typer.Option("--fifo", help="One FIFO queue at each link, instead of a queue for each flow."),
]
Target = Annotated[
    str | None,
    typer.Option(
        metavar="VALUE",
        help="Accuracy, e.g. 90 or 0.9, or other metric to reach; by default the scenario's, or else the "
        "best that half of the runs reached.",
        show_default=False,
    ),
]


class Hinting(TyperCommand):
    """A command; with `--set`, its error for an unknown option `--duration` explains how to set a duration."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            option = str(getattr(error, "option_name", ""))
            if not hasattr(error, "possibilities") or not any(each.name == "overrides" for each in self.params):
                raise
            from dlion_sim.scenario.loading import paths_of

            paths = paths_of(option.lstrip("-").replace("-", "_"))
            path = next((each for each in paths if "*" not in each), None)  # An entry of a list needs a number.
            if path is None:
                raise
            problem = "is not an option but a scenario's key"
            raise InputError(problem, file=option, allowed=f"--set {path}=...") from None


Peers = Annotated[str, typer.Option(help="Addresses of the participants, in order: host:port,host:port,...")]
SecretFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A file of mode 600 with the secret that all nodes have, in place of a CA.",
        show_default=False,
    ),
]
CaFile = Annotated[
    Path | None,
    typer.Option("--ca", metavar="FILE", help="The certificate of the nodes' CA, in PEM.", show_default=False),
]
CertificateFile = Annotated[
    Path | None,
    typer.Option(
        "--certificate", metavar="FILE", help="This node's certificate, for the name node-RANK.", show_default=False
    ),
]
KeyFile = Annotated[
    Path | None,
    typer.Option("--key", metavar="FILE", help="Its private key, in a file of mode 600.", show_default=False),
]
Listen = Annotated[
    str | None, typer.Option(help="Address to listen on; by default that in --peers.", show_default=False)
]
Delays = Annotated[
    str | None,
    typer.Option(
        help="Delays of messages from each participant, in order, to emulate round-trip times: 0 s,30 ms,...",
        show_default=False,
    ),
]
ListenFd = Annotated[int | None, typer.Option(hidden=True, help="An open listening socket.")]
Attached = Annotated[bool, typer.Option("--attached", hidden=True, help="End with standard input.")]
StartWithin = Annotated[float, typer.Option(help="Seconds within which all nodes must connect.", min=0)]
Silence = Annotated[float, typer.Option(help="Seconds of silence after which a peer is lost.", min=0)]


def addresses_in(peers: str) -> list[Address]:
    """The addresses in --peers."""
    from dlion_sim.live import Address

    try:
        return [Address.parse(each) for each in peers.split(",")]
    except InputError as error:
        raise error.within("--peers") from None


def listener_of(listen: str | None, listen_fd: int | None) -> Address | socket.socket | None:
    """The address of --listen, or the open socket."""
    from dlion_sim.live import Address

    if listen:
        return Address.parse(listen)
    return None if listen_fd is None else socket.socket(fileno=listen_fd)


def identity_in(
    secret_file: Path | None, ca: Path | None, certificate: Path | None, key: Path | None, rank: int
) -> Identity:
    """The identity of a node by --secret-file, or by --ca, --certificate and --key."""
    from dlion_sim.live import Identity, read_secret

    files = {"--ca": ca, "--certificate": certificate, "--key": key}
    given = [name for name, file in files.items() if file is not None]
    if secret_file is not None:
        if given:
            raise InputError(f"does not go with {given[0]}", file="--secret-file", allowed="either")
        return Identity.of_secret(read_secret(secret_file), rank)
    if ca is not None and certificate is not None and key is not None:
        return Identity.of_files(ca, certificate, key, rank)
    missing = next(name for name in files if name not in given) if given else "--secret-file"
    raise InputError("is missing", file=missing, allowed="--secret-file, or else --ca, --certificate and --key")


def seconds_of(written: str, option: str) -> float:
    """A duration given by an option, in seconds."""
    from dlion_sim.scenario import DURATION

    try:
        return DURATION.parse(written)
    except ValueError as error:
        raise InputError(str(error), file=option) from None


def seconds_in(delays: str | None) -> Sequence[float]:
    """The seconds in --delays."""
    return [seconds_of(each, "--delays") for each in delays.split(",")] if delays else ()


_Output = typer.Option("--output", "-o", metavar="FILE", help="The YAML file to write.", show_default=False)
BlockFile = Annotated[Path, _Output]


def check_new(*files: Path) -> None:
    """Raise InputError unless each file is new and its folder exists."""
    for file in files:
        if file.exists():
            raise InputError("exists already", file=file, allowed="a new file")
        if not file.parent.is_dir():
            raise InputError("is in a missing folder", file=file, allowed="a new file in a folder")


def write_block(output: Path, block: dict[str, Any], about: str, further: Iterable[str] = ()) -> None:
    """Write the block, below comments on its origin and `further` ones."""
    from dlion_sim.results.atomic import write
    from dlion_sim.yaml_text import write_yaml

    today = datetime.now(UTC).date().isoformat()
    lines = [f"Measured on {platform.node()}, written {today}: {about}.", *further]
    write(output, ("".join(f"# {line}\n" for line in lines) + write_yaml(block)).encode())
