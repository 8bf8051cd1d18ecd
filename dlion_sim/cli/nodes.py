"""Options of commands that are a node among others."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dlion_sim.errors import InputError

if TYPE_CHECKING:
    from dlion_sim.live import Address

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
