"""Network models of simulations: flows, with or without a model of TCP, or packets."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from dlion_sim.scenario.faults import RuleError
from dlion_sim.scenario.model import Model, or_name
from dlion_sim.scenario.units import Duration, QueueSize, Size

SEGMENT, FULL_FRAME = 1448, 1514
"""Bytes of TCP's stream, with timestamps, in a full Ethernet frame with IPv4, and of that frame."""
BURST_SECONDS = 0.002
"""A token bucket holds at least what its link carries in this time: timers of hosts are late by less."""
Window = Annotated[Size, Field(ge=SEGMENT)]
"""Bytes: a segment or more."""


class NoTcp(Model):
    """Messages get their fair share of the links at once, at any round-trip time."""

    kind: Literal["none"] = "none"


class Lv08(Model):
    """SimGrid's model LV08 (Velho and Legrand, SIMUTools 2009): factors fitted to packet-level simulations, a window,
    and smaller shares for longer round trips. They include headers, and acknowledgements of 5 % in the opposite
    direction."""

    kind: Literal["lv08"] = "lv08"
    latency_factor: Annotated[float, Field(ge=1, le=1000)] = 13.01
    """Factor on the latency of a path, for slow start."""
    bandwidth_factor: Annotated[float, Field(gt=0, le=1)] = 0.97
    """Share of a link's bandwidth that messages get."""
    window: Window = 4 * 1024.0**2
    """Maximum in flight per round trip (SimGrid's `TCP-gamma`)."""
    sharing_size: Size = 20537.0
    """A flow's share of a full link is proportional to 1 / (path latency + time of this size over each of its links) at
    its start (SimGrid's `weight-S`)."""


class Windows(Model):
    """TCP windows: a connection's window doubles every round trip (slow start) until its links are full or it is at its
    maximum; then its rate is limited to window / RTT."""

    kind: Literal["window"] = "window"
    initial_window: Annotated[int, Field(ge=1, le=1_000_000)] = 10
    """Initial window of a connection, in segments of 1448 bytes (RFC 6928)."""
    receive_window: Window = 3 * 1024.0**2
    """Maximum in flight per round trip. By default as in Linux: half of `tcp_rmem`'s 6 MiB."""
    idle_restart: bool = True
    """Whether an idle connection's window is halved every retransmission timeout (200 ms plus RTT), down to the initial
    one (RFC 2861), as in Linux."""


AnyTcp = NoTcp | Lv08 | Windows


class Flows(Model):
    """Flow level: messages are flows that share links max-min fairly."""

    kind: Literal["flows"] = "flows"
    acknowledgements: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Acknowledgements for each full frame, in the opposite direction. The default is RFC 1122's; not with LV08, which
    has its own."""
    queue: Annotated[QueueSize, Field(ge=0)] = 0.0
    """Size of a connection's queue before the tightest link of its route; by default none. Only without a model of
    TCP."""
    burst: Annotated[QueueSize, Field(ge=0)] = 0.0
    """Size of the token bucket, with queues: bytes that a link passes at once after a pause. It holds at least what the
    link carries in 2 ms; by default there is none."""


class Packets(Model):
    """Packet level: every packet of a message waits in the queue of each link but the sender's NIC, and may be marked
    or dropped there.

    A machine's own NIC has no queue: it sends as soon as it is free.
    """

    kind: Literal["packets"] = "packets"
    buffer: Annotated[QueueSize, Field(ge=1514)] = 150_000.0
    """Size of each link's queue; packets beyond it are dropped. A full packet is 1514 bytes."""
    drop_above: QueueSize = 30_000.0
    """Queue size above which packets that may be lost are dropped."""
    mark_above: QueueSize = 30_000.0
    """Queue size above which other packets are marked (ECN)."""
    burst: QueueSize = 0.0
    """Size of the token bucket: bytes that a link passes at once after a pause."""
    shared_buffer: bool = False
    """Whether all outgoing links of a switch share one buffer."""
    fair: bool = False
    """Whether every connection has its own queue at each link, served by self-clocked fair queueing, short frames
    first (much as fq_codel)."""
    priorities: Annotated[int, Field(ge=1, le=8)] = 8
    """Number of priorities at each link."""
    paths: Literal["hash", "spray"] = "hash"
    """Choice among several routes (a fabric's spines): one per connection, or one per packet."""
    delays: Literal["links", "receivers"] = "links"
    """Where latency applies: on the links, or at receivers, which acknowledge at once (emulations on kernels without
    delays)."""
    sample_every: Annotated[Duration, Field(ge=1e-6)] | None = None
    """Time between rows of queues.parquet; by default between evaluations."""

    @model_validator(mode="after")
    def _has_one_kind_of_queue(self) -> Self:
        if self.fair and self.shared_buffer:
            raise RuleError("is for queues that connections share", allowed="false, with fair", at=("shared_buffer",))
        return self


AnyNetworkModel = Flows | Packets


class Network(Model):
    """Network model of simulations. Live runs use the real network, emulated runs the kernel's."""

    model: Annotated[Annotated[AnyNetworkModel, Field(discriminator="kind")], or_name(AnyNetworkModel)] = Flows()
    """Flows or packets."""
    tcp: Annotated[Annotated[AnyTcp, Field(discriminator="kind")], or_name(AnyTcp)] = NoTcp()
    """Model of TCP for flows."""

    @model_validator(mode="after")
    def _has_one_tcp(self) -> Self:
        if isinstance(self.model, Packets) and not isinstance(self.tcp, NoTcp):
            raise RuleError(f"{self.tcp.kind} is a model for flows", allowed="none, with model: packets", at=("tcp",))
        if isinstance(self.model, Flows) and self.model.queue and not isinstance(self.tcp, NoTcp):
            raise RuleError(f"does not go with {self.tcp.kind}", allowed="0 bytes, its default", at=("model", "queue"))
        if isinstance(self.model, Flows) and self.model.burst and not self.model.queue:
            raise RuleError("is for links with queues", allowed="0 bytes, its default", at=("model", "burst"))
        if isinstance(self.tcp, Lv08) and self.model != Flows():
            at = ("model", "acknowledgements")
            raise RuleError("does not go with lv08, which has its own", allowed="0.5, its default", at=at)
        return self
