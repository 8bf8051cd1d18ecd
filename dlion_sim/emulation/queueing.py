"""What waits at emulated links, and whether the kernel delays packets there: as a scenario's network model has it, as
far as this kernel can."""

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
    """Of a network `model`. Flows have a queue for what each machine sends another, or, unless it is `fair`, one for
    all; packets the queues that they say at switches and routers."""

    model: Flows | Packets
    fair: bool = True
    is_delayed: bool = False
    """Whether the kernel delays what crosses the WAN."""
    marks: bool = False
    """Whether it marks packets, and serves them by priority."""

    @classmethod
    def of(cls, model: Flows | Packets, *, fair: bool = True) -> Queueing:
        """What this kernel can of it."""
        holds_back = isinstance(model, Packets) and model.delays == "receivers"
        return cls(model, fair, not holds_back and has_netem(), isinstance(model, Packets) and has_red())

    def at_link(self, crossing: Sequence[Flow], *, is_host: bool) -> Queues:
        """Those of a link that flows cross, at a host's own NIC or behind it."""
        match self.model:
            case Flows():
                return FairQueues(crossing) if self.fair else OneQueue()
            # Where switches have what the scenario says, a host's own NIC drops nothing: what is to be sent waits in
            # its sockets.
            case Packets(fair=True, buffer=buffer):
                return FairQueues(crossing, _HOST_BYTES if is_host else buffer)
            case Packets(buffer=buffer):
                if is_host or not self.marks:
                    return OneQueue(_HOST_BYTES if is_host else buffer)
                return MarkingQueues(self.model)

    @property
    def told(self) -> Mapping[str, Any]:
        """What a run's manifest says of it."""
        told: dict[str, Any] = {"delay": "kernel" if self.is_delayed else "transport"}
        match self.model:
            case Flows():
                return {**told, "queues": "fair" if self.fair else "fifo"}
            case Packets(fair=is_fair, buffer=buffer):
                kind = "fair" if is_fair else "marking" if self.marks else "fifo"
                return {**told, "queues": kind, "buffer": buffer}
