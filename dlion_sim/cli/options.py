"""Arguments and options that several commands share, and what they stand for."""

from __future__ import annotations

import platform
import socket
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer
from typer.core import TyperCommand

from dlion_sim.errors import InputError

if TYPE_CHECKING:
    from dlion_sim.live import Address


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


class Hinting(TyperCommand):
    """A command; one with `--set` refuses `--duration` in words that say how a duration is set."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            option = str(getattr(error, "option_name", ""))
            if not hasattr(error, "possibilities") or not any(each.name == "overrides" for each in self.params):
                raise
            path = _path_of(option.lstrip("-").replace("-", "_"))
            if path is None:
                raise
            problem = "is no option, but a scenario's key"
            raise InputError(problem, file=option, allowed=f"--set {path}=...") from None


def _path_of(key: str) -> str | None:
    """Where in a scenario a key stands: of several places the one that is least deep; None where it is none."""
    from dlion_sim.scenario import Scenario

    paths = sorted(_paths(Scenario), key=lambda path: path.count("."))
    return next((path for path in paths if path == key or path.endswith(f".{key}")), None)


def _paths(kind: type, above: str = "") -> Iterator[str]:
    """All dotted paths of keys, those in lists left out, since they need a number."""
    for name, field in kind.model_fields.items():  # type: ignore[attr-defined]
        path = f"{above}{field.alias or name}"
        yield path
        for inner in _models(field.annotation):
            yield from _paths(inner, f"{path}.")


def _models(annotation: Any) -> Iterator[type]:
    from dlion_sim.scenario.model import Model

    if isinstance(annotation, type) and issubclass(annotation, Model):
        yield annotation
    elif getattr(annotation, "__origin__", None) not in (list, dict):
        for argument in get_args(annotation):
            yield from _models(argument)


Peers = Annotated[str, typer.Option(help="Where each participant listens, in their order: host:port,host:port,...")]
SecretFile = Annotated[Path, typer.Option(help="A file of mode 600 with a secret that all nodes have.")]
Listen = Annotated[str | None, typer.Option(help="Where to listen, if not as --peers says.", show_default=False)]
Delays = Annotated[
    str | None,
    typer.Option(
        help="For how long to hold back what comes from each participant, in their order: 0 s,30 ms,... "
        "For a network that stands for one of longer round-trip times.",
        show_default=False,
    ),
]
ListenFd = Annotated[int | None, typer.Option(hidden=True, help="A socket that listens already.")]
Attached = Annotated[bool, typer.Option("--attached", hidden=True, help="End with standard input.")]
StartWithin = Annotated[float, typer.Option(help="Seconds until all nodes must be connected.", min=0)]
Silence = Annotated[float, typer.Option(help="Seconds without a sign of life after which a peer is dropped.", min=0)]


def addresses_in(peers: str) -> list[Address]:
    """What --peers says."""
    from dlion_sim.live import Address

    try:
        return [Address.parse(each) for each in peers.split(",")]
    except InputError as error:
        raise error.within("--peers") from None


def listener_of(listen: str | None, listen_fd: int | None) -> Address | socket.socket | None:
    """What --listen says, or what listens already."""
    from dlion_sim.live import Address

    if listen:
        return Address.parse(listen)
    return None if listen_fd is None else socket.socket(fileno=listen_fd)


def seconds_in(delays: str | None) -> Sequence[float]:
    """What --delays says."""
    from dlion_sim.scenario import DURATION

    try:
        return [DURATION.parse(each) for each in delays.split(",")] if delays else ()
    except ValueError as error:
        raise InputError(str(error), file="--delays") from None


_Output = typer.Option("--output", "-o", metavar="FILE", help="The YAML file to write.", show_default=False)
BlockFile = Annotated[Path, _Output]


def refuse_unless_free(*files: Path) -> None:
    """Raise InputError unless each can be written anew."""
    for file in files:
        if file.exists():
            raise InputError("is there already", file=file, allowed="a new file")
        if not file.parent.is_dir():
            raise InputError("is in no folder that there is", file=file, allowed="a new file in a folder")


def write_block(output: Path, block: dict[str, Any], about: str, further: Iterable[str] = ()) -> None:
    """The block, below a line on where it is from and `further` ones."""
    from dlion_sim.results.atomic import write
    from dlion_sim.yaml_text import write_yaml

    today = datetime.now(UTC).date().isoformat()
    lines = [f"Measured on {platform.node()}, written {today}: {about}.", *further]
    write(output, ("".join(f"# {line}\n" for line in lines) + write_yaml(block)).encode())
