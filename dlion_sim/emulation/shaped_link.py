"""One direction of an emulated link, whose capacity can be changed while it is used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dlion_sim.emulation.shaping import Flow, Queues, reshape
from dlion_sim.errors import InputError
from dlion_sim.scenario import Schedule

CONGESTION_CONTROL = "reno"
"""Kernels let namespaces choose only this or their own default, which differs."""


@dataclass(frozen=True)
class Link:
    """One direction of a link: what a device of a node sends."""

    name: str
    node: Any
    device: str
    capacity: Schedule | None
    """In bits per second; None: only others limit it."""
    delay: float
    """In seconds, by the kernel."""
    flows: Sequence[Flow]
    """All that can cross it."""
    queues: Queues

    def changes(self) -> Iterator[tuple[float, float]]:
        """(seconds since the start, bits per second from then on); without end if its schedule repeats."""
        return self.capacity.changes() if self.capacity else iter(())

    def set(self, bps: float) -> None:
        """Change its capacity from now on. Raises InputError where the kernel refuses."""
        run(self.node, *reshape(self.device, bps, self.delay, self.queues))


def run(node: Any, *command: str) -> None:
    """Run a command on a node. Raises InputError where it fails."""
    _, errors, code = node.pexec(list(command))
    if code:
        raise InputError(f"this machine cannot emulate the scenario: '{command[0]}' says: {errors}")
