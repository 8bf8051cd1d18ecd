"""How a simulation models the network: as flows, and what TCP makes of them; or packet by packet."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from dlion_sim.scenario.faults import RuleError
from dlion_sim.scenario.model import Model
from dlion_sim.scenario.units import Duration, QueueSize, Size

Window = Annotated[Size, Field(ge=1448)]
"""Bytes: a segment or more."""


class NoTcp(Model):
    """A message has its fair share of the links at once, and however long round trips are."""

    kind: Literal["none"] = "none"


class Lv08(Model):
    """SimGrid's model LV08 (Velho and Legrand, SIMUTools 2009): factors that were fitted to packet-level simulations,
    a window, and less of a link for longer round trips. Headers and acknowledgements are in the factors: the latter, as
    there, are 5 % of what goes the other way."""

    kind: Literal["lv08"] = "lv08"
    latency_factor: Annotated[float, Field(ge=1, le=1000)] = 13.01
    """So many times its path's latency passes before a message goes over links, which brings it there: slow start is
    in that."""
    bandwidth_factor: Annotated[float, Field(gt=0, le=1)] = 0.97
    """The part of a link's bandwidth that messages get."""
    window: Window = 4 * 1024.0**2
    """At most so much is under way in a round trip (SimGrid's `TCP-gamma`)."""
    sharing_size: Size = 20537.0
    """A flow's part of a full link is in proportion to 1 / (latency of its path + what so much takes over each of its
    links), when it begins (SimGrid's `weight-S`)."""


class Windows(Model):
    """Each connection begins with a small window, of which a round trip brings as much again (slow start), until links
    are full or it is as large as it can be. After that it is bound by its window over the round trip alone."""

    kind: Literal["window"] = "window"
    initial_window: Annotated[int, Field(ge=1, le=1_000_000)] = 10
    """Segments of 1448 bytes that a connection begins with (RFC 6928)."""
    receive_window: Window = 3 * 1024.0**2
    """At most so much of messages is under way in a round trip. By default what Linux tunes itself to: half of
    `tcp_rmem`'s 6 MiB, as the other half is for bookkeeping (`tcp_adv_win_scale` 1)."""
    idle_restart: bool = True
    """Whether a window is halved, down to the initial one, for each retransmission timeout (200 ms and a round trip)
    without anything to send (RFC 2861), as Linux does by default (`tcp_slow_start_after_idle`)."""


AnyTcp = NoTcp | Lv08 | Windows


class Flows(Model):
    """A message is a flow, and flows share links max-min fairly: what many packets come to, without queues."""

    kind: Literal["flows"] = "flows"


class Packets(Model):
    """A message is its packets, each of which waits in the queue of every link, is marked there or dropped.

    A machine's own NIC has no queue: it sends, when it is free, what may be sent.
    """

    kind: Literal["packets"] = "packets"
    buffer: Annotated[QueueSize, Field(ge=1514)] = 150_000.0
    """What may wait for a link; what comes then is dropped. One packet is 1514 bytes."""
    drop_above: QueueSize = 30_000.0
    """Where more is waiting, packets that may be lost are dropped. Above the buffer: never."""
    mark_above: QueueSize = 30_000.0
    """Where more is waiting, other packets are marked (ECN), from which senders see that it is much. Above the buffer:
    never."""
    burst: QueueSize = 0.0
    """What a link lets pass at once after a pause in which it could have carried as much, as token buckets do."""
    shared_buffer: bool = False
    """Whether all links that a switch sends on have that buffer together, and not each its own."""
    fair: bool = False
    """Whether at each link every connection has a queue of its own, to which all these sizes apply, and they are served
    in turn, short frames first: as Linux's fq_codel does, and emulated networks without a model of packets."""
    priorities: Annotated[int, Field(ge=1, le=8)] = 8
    """How many priorities a link knows: of those that wait, the highest goes first."""
    paths: Literal["hash", "spray"] = "hash"
    """Where there are several ways (a fabric with spines): whether a connection keeps one, or each packet takes its
    own."""
    delays: Literal["links", "receivers"] = "links"
    """Where half of a round trip passes: on the way; or who receives holds messages back, and acknowledgements know
    nothing of it, as in emulations on kernels that cannot delay."""
    sample_every: Annotated[Duration, Field(ge=1e-6)] | None = None
    """Time between rows of queues.parquet, which tell of every link's queue; by default that between evaluations."""

    @model_validator(mode="after")
    def _has_one_kind_of_queue(self) -> Self:
        if self.fair and self.shared_buffer:
            raise RuleError("is of queues that connections share", allowed="false, with fair", at=("shared_buffer",))
        return self


AnyNetworkModel = Flows | Packets


class Network(Model):
    """How a simulation models the network. Live runs have a real one, emulated ones that of the kernel."""

    model: Annotated[
        Annotated[AnyNetworkModel, Field(discriminator="kind")],
        BeforeValidator(
            lambda given: {"kind": given} if isinstance(given, str) else given,
            json_schema_input_type=Literal["flows", "packets"] | AnyNetworkModel,
        ),
    ] = Flows()
    """Whether messages are flows or packets; a plain name is short for {kind: name}."""
    tcp: Annotated[
        Annotated[AnyTcp, Field(discriminator="kind")],
        BeforeValidator(
            lambda given: {"kind": given} if isinstance(given, str) else given,
            json_schema_input_type=Literal["none", "lv08", "window"] | AnyTcp,
        ),
    ] = NoTcp()
    """What TCP makes of flows; a plain name is short for {kind: name}."""

    @model_validator(mode="after")
    def _has_one_tcp(self) -> Self:
        if isinstance(self.model, Packets) and not isinstance(self.tcp, NoTcp):
            raise RuleError(f"{self.tcp.kind} is of flows", allowed="none, with model: packets", at=("tcp",))
        return self
