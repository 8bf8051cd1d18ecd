"""The configuration of a node of a mesh, and of a run."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Self

from dlion_sim.assembly import Setting
from dlion_sim.errors import InputError
from dlion_sim.learning.process import Device
from dlion_sim.live.connection import Address, listen
from dlion_sim.live.identity import Identity
from dlion_sim.scenario import Scenario

LEFT = "left"
"""What ends the run of a node that leaves gracefully, and its status then."""
BEGUN, STANDS_BY = "begun", "stands by"
"""Further statuses."""


def status_line(rank: int, status: str) -> str:
    """The line that a node prints once it has this status."""
    return f"node {rank}: {status}"


@dataclass(frozen=True)
class Timeouts:
    """The seconds after which a node continues without a peer, or gives up."""

    start: float = 60.0
    """Until all are connected and ready."""
    handshake: float = 10.0
    """Until a connecting node has authenticated itself."""
    silence: float = 30.0
    """Without a sign of life from a peer, or without any progress of a message to it."""

    @classmethod
    def of(cls, scenario: Scenario, *, start: float = 60.0, silence: float | None = None) -> Self:
        """Those of a run, with the scenario's silence by default."""
        if silence is None:
            silence = scenario.availability.silence if scenario.availability else cls.silence
        return cls(start=start, silence=silence)


@dataclass(frozen=True)
class MeshConfig:
    """A node of a mesh, and its connections."""

    rank: int
    addresses: Sequence[Address]
    """Of all participants, in their order."""
    identity: Identity
    _: KW_ONLY
    listen: Address | socket.socket | None = None
    """Where to listen, if not at its own address; or a socket that listens already."""
    timeouts: Timeouts = Timeouts()
    delays: Sequence[float] = ()
    """Seconds to hold back messages from each participant, if the network has no delay of its own."""
    attached: bool = False
    """Whether it ends with standard input."""

    def check_places(self, participants: int) -> None:
        """Raise InputError unless it is one of so many participants."""
        if not 0 <= self.rank < participants:
            raise InputError(f"there is no participant {self.rank}", file="`rank`", allowed=f"0 to {participants - 1}")
        if self.delays and len(self.delays) != participants:
            raise InputError(f"{len(self.delays)} delays", file="`delays`", allowed="one for each of `addresses`")

    def listener(self) -> socket.socket:
        """The socket that listens for the others. Raises InputError if there can be none."""
        if isinstance(self.listen, socket.socket):
            return self.listen
        return listen(self.listen or self.addresses[self.rank])


@dataclass(frozen=True)
class NodeConfig(MeshConfig):
    """A node of a run, with a scenario."""

    output: Path
    """The folder that the node's part goes into."""
    _: KW_ONLY
    device: Device = "auto"
    """The device of a worker's gradients and evaluations."""
    paced: bool = True
    """Whether computations take as long as on the scenario's machines."""
    joins: bool = False
    """Whether the node joins a run that may be under way."""
    incarnation: int | None = None
    """By default the first one without a part in `output`."""
    begun: Callable[[], None] = lambda: None
    """Called when all begin."""
    left: Callable[[], None] = lambda: None
    """Called when it has left gracefully."""
    told: Callable[[], float] | None = None
    """Waits until the node is to join, and returns when the run began, by `time.monotonic`."""

    def check(self, setting: Setting) -> None:
        """Raise InputError unless it fits that run."""
        if len(self.addresses) != setting.participants:
            raise InputError(
                f"{len(self.addresses)} addresses for {setting.workers} workers and {len(setting.hosts)} servers",
                file="`addresses`",
                allowed="one for each, workers first",
            )
        if self.joins and setting.scenario.availability is None:
            raise InputError(
                "nobody can join a run in which all are there all the time",
                path="availability",
                allowed="{}, or when machines and links are not there",
            )
        self.check_places(setting.participants)
        for worker in setting.scenario.cluster.workers if self.paced and setting.scenario.duration is None else ():
            if worker.compute.cores.repeat is None and worker.compute.cores.steps[-1][1] == 0:
                raise InputError(
                    f"is needed: the cores of {worker.name} are gone for good at last, so that it may never be done",
                    path="duration",
                )
