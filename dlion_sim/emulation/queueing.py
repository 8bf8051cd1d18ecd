"""The queues of emulated links, and whether the kernel delays packets there: by the scenario's network model, as far as
this kernel supports it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dlion_sim.emulation.requirements import has_netem, has_red
from dlion_sim.emulation.shaping import FairQueues, Flow, MarkingQueues, OneQueue, Queues
from dlion_sim.scenario import Flows, Packets

_HOST_BYTES = 1_000_000
"""More than a host's sockets let wait at its NIC, where switches have queues of their own."""


@dataclass(frozen=True)
class Queueing:
    """Of a network `model`. Flows have a queue for what each machine sends another, of the size that they say if they
    say one, or, unless it is `fair`, one for all; packets the queues that they say at switches and routers."""

    model: Flows | Packets
    fair: bool = True
    is_delayed: bool = False
    """Whether the kernel delays what crosses the WAN."""
    marks: bool = False
    """Whether it marks packets, and serves them by priority."""

    @classmethod
    def of(cls, model: Flows | Packets, *, fair: bool = True) -> Queueing:
        """The part that this kernel supports."""
        holds_back = isinstance(model, Packets) and model.delays == "receivers"
        return cls(model, fair, not holds_back and has_netem(), isinstance(model, Packets) and has_red())

    def at_link(self, crossing: Sequence[Flow], *, is_host: bool) -> Queues:
        """The queues of a link of these flows, at a host's own NIC or behind it."""
        match self.model:
            case Flows(queue=size):
                return FairQueues(crossing, size or None) if self.fair else OneQueue()
            # If switches have the scenario's queues, a host's own NIC drops nothing: data wait in sockets.
            case Packets(fair=True, buffer=buffer):
                return FairQueues(crossing, _HOST_BYTES if is_host else buffer)
            case Packets(buffer=buffer):
                if is_host or not self.marks:
                    return OneQueue(_HOST_BYTES if is_host else buffer)
                return MarkingQueues(self.model)

    @property
    def manifest(self) -> Mapping[str, Any]:
        """Its part of a run's manifest."""
        delay: dict[str, Any] = {"delay": "kernel" if self.is_delayed else "transport"}
        match self.model:
            case Flows(queue=size) if size and self.fair:
                return {**delay, "queues": "fair", "buffer": size}
            case Flows():
                return {**delay, "queues": "fair" if self.fair else "fifo"}
            case Packets(fair=is_fair, buffer=buffer):
                kind = "fair" if is_fair else "marking" if self.marks else "fifo"
                return {**delay, "queues": kind, "buffer": buffer}
