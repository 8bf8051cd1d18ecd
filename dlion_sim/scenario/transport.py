"""Transports: reliable like TCP, shortest message first (pFabric), or with bounded loss (DLCP)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from dlion_sim.errors import InputError
from dlion_sim.scenario.faults import RuleError, listed
from dlion_sim.scenario.model import Model, or_name
from dlion_sim.scenario.network import Window
from dlion_sim.scenario.units import PositiveDuration

Bound = Annotated[float, Field(ge=0, lt=1)]
"""Share of the bytes that may be lost."""
InitialWindow = Annotated[int, Field(ge=1, le=1_000_000)]
"""Packets."""


class Reliable(Model):
    """Reliable, ordered delivery. Its settings are for simulated packets (DCTCP with selective acknowledgements); flows
    use `network.tcp`, real nodes the kernel's TCP."""

    kind: Literal["reliable"] = "reliable"
    initial_window: InitialWindow = 10
    """Initial window of a connection, in segments of 1448 bytes (RFC 6928)."""
    receive_window: Window = 3 * 1024.0**2
    """Maximum in flight per round trip."""
    least_timeout: PositiveDuration = 0.2
    """Minimum retransmission timeout, in addition to a round trip."""
    recovery: Literal["plain", "linux"] = "plain"
    """Loss detection and recovery. plain: three later segments, or the timeout. linux: also RACK-TLP (RFC 8985), RFC
    6675 and windows of whole segments."""


class Pfabric(Model):
    """Reliable delivery where packets of messages with fewer remaining bytes are sent first and dropped last (Alizadeh
    et al., SIGCOMM'13). For simulated packets only."""

    kind: Literal["pfabric"] = "pfabric"
    least_timeout: PositiveDuration | None = None
    """Retransmission timeout; by default three round trips."""


class StageBounds(Model):
    """Loss bounds of the messages of each stage."""

    push: Bound = 0.0
    """Gradients to servers or peers."""
    pull: Bound = 0.0
    """Parameters from servers."""
    reduce: Bound = 0.0
    """Chunks of a ring during reduction: a loss affects all gradients summed so far."""
    gather: Bound = 0.0
    """Summed chunks of a ring: after a loss, replicas differ."""
    mix: Bound = 0.0
    """Parameters that peers average."""


AnyBound = Annotated[
    Annotated[Bound, Tag("number")] | Annotated[StageBounds, Tag("stages")],
    Discriminator(lambda given: "stages" if isinstance(given, Mapping | StageBounds) else "number"),
]


class LossPhase(Model):
    """A factor on the bounds from an iteration on."""

    since: Annotated[int, Field(alias="from", ge=0)]
    """First iteration."""
    factor: Annotated[float, Field(ge=0, le=1000)]
    """Factor on `loss_bound` and `by_tensor`."""


class Dlcp(Model):
    """Bounded loss: a message is complete when the missing share is within a bound (Wang et al., arXiv 2008.08445; MLT,
    NSDI'24). For simulated packets, or UDP between real nodes."""

    kind: Literal["dlcp"] = "dlcp"
    loss_bound: AnyBound = 0.1
    """Share of a message's bytes that may be lost, for all stages (0.1: the paper's) or each one (by default 0)."""
    by_tensor: dict[str, Bound] = Field(default_factory=dict)
    """Bounds of variables by name, or by the longest matching suffix such as `weight`; each variable's bytes are then
    counted separately, in dense messages of stages that may lose anything."""
    phases: list[LossPhase] = Field(default_factory=list)
    """Factors on the bounds by iteration, e.g. for a critical first phase (DBLP, arXiv 2605.01989), not for pairwise
    averaging."""
    fill: Literal["zero", "rescale", "stale"] = "zero"
    """Replacement of missing gradients: 0 (the paper's); 0, with the rest scaled up, unbiased; or those of the sender's
    previous message, as missing parameters always are."""
    drop: Literal["none", "layer", "magnitude", "layer+magnitude"] = "layer+magnitude"
    """Packets that switches drop early, where they mark others: those of front layers, of small gradients, or of
    both."""
    front: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Share of the variables that are front layers (chosen here)."""
    quantile: Annotated[float, Field(ge=0, le=1)] = 0.5
    """A packet has large gradients if its mean magnitude is at least this quantile of its variable's packets (chosen
    here)."""
    order: Literal["layer", "none"] = "layer"
    """Priorities in switches' queues. layer: large gradients, front layers first; then small ones, front layers
    last."""
    stop_early: bool = True
    """Whether a message is complete as soon as the missing share is within the bound; otherwise after all packets were
    sent once."""
    congestion_control: Literal["dctcp", "none"] = "dctcp"
    """Congestion control as in DCTCP, or none: packets are sent at the NIC's rate."""
    initial_window: InitialWindow = 10
    """Initial window of a connection, in packets (chosen here)."""
    least_timeout: PositiveDuration = 0.01
    """Minimum timeout without feedback, in addition to a round trip; then all packets in flight count as lost (chosen
    here)."""

    @property
    def bounds(self) -> dict[str, float]:
        """Loss bound of each stage, before `phases`."""
        if isinstance(self.loss_bound, StageBounds):
            return self.loss_bound.model_dump()
        return dict.fromkeys(StageBounds.model_fields, self.loss_bound)

    def by_variable(self, names: Sequence[str]) -> list[float | None]:
        """The bounds by variable name of a model's variables, None for those without one.

        Raises InputError for an unknown variable.
        """
        for end in self.by_tensor:
            if not any(name.endswith(end) for name in names):
                raise InputError(
                    "the model has no such variable", path=f"transport.by_tensor.{end}", allowed=listed(names)
                )
        ends = sorted(self.by_tensor, key=len, reverse=True)
        return [next((self.by_tensor[end] for end in ends if name.endswith(end)), None) for name in names]

    @model_validator(mode="after")
    def _phases_follow_one_another(self) -> Self:
        for number, (earlier, later) in enumerate(pairwise(self.phases), start=1):
            if later.since <= earlier.since:
                raise RuleError(
                    f"iteration {later.since} comes after {earlier.since}: phases are in order",
                    at=("phases", number, "from"),
                )
        return self

    @model_validator(mode="after")
    def _never_loses_all(self) -> Self:
        most = max(*self.bounds.values(), *self.by_tensor.values(), 0.0)
        for number, phase in enumerate(self.phases):
            if most * phase.factor >= 1:
                raise RuleError(
                    f"with {phase.factor:g} times the bound of {most:g} all might be lost",
                    allowed="less than 1 together",
                    at=("phases", number, "factor"),
                )
        return self


Transport = Reliable | Pfabric | Dlcp

AnyTransport = Annotated[Annotated[Transport, Field(discriminator="kind")], or_name(Transport)]
