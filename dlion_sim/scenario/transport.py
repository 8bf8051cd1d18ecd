"""What carries messages: reliably, as TCP does; with the shortest first; or with a bound on what may be lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from dlion_sim.errors import InputError
from dlion_sim.scenario.faults import RuleError, listed
from dlion_sim.scenario.model import Model
from dlion_sim.scenario.network import Window
from dlion_sim.scenario.units import PositiveDuration

Bound = Annotated[float, Field(ge=0, lt=1)]
"""Part of the bytes that may be lost."""
InitialWindow = Annotated[int, Field(ge=1, le=1_000_000)]
"""Packets."""


class Reliable(Model):
    """All of a message arrives, in order, as over TCP. Its settings are those of simulated packets (DCTCP, with
    selective acknowledgements); flows have what `network.tcp` says, and real nodes the kernel's TCP."""

    kind: Literal["reliable"] = "reliable"
    initial_window: InitialWindow = 10
    """Segments of 1448 bytes that a connection begins with (RFC 6928)."""
    receive_window: Window = 3 * 1024.0**2
    """At most so much of messages is under way in a round trip."""
    least_timeout: PositiveDuration = 0.2
    """At least so long after a round trip what is not acknowledged is taken for lost; by default as in Linux."""
    recovery: Literal["plain", "linux"] = "plain"
    """How losses are found and mended. plain: three later segments tell of a loss, or else the timeout. linux: near a
    message's end a round trip or two tell as well (RACK-TLP, RFC 8985), what is lost first is sent again at once (RFC
    6675), and windows are of whole segments."""


class Pfabric(Model):
    """All of a message arrives; the fewer bytes of it are left to send, the earlier packets go first and the later they
    are dropped (pFabric: Alizadeh et al., SIGCOMM'13). Of simulated packets only."""

    kind: Literal["pfabric"] = "pfabric"
    least_timeout: PositiveDuration | None = None
    """The time after which what is not acknowledged is taken for lost; by default three round trips."""


class StageBounds(Model):
    """What part may be lost of the bytes of each stage's messages."""

    push: Bound = 0.0
    """Gradients, on their way to servers or peers."""
    pull: Bound = 0.0
    """Parameters, as servers answer."""
    reduce: Bound = 0.0
    """Chunks of a ring on which sums grow: what is lost is a part of all gradients so far."""
    gather: Bound = 0.0
    """Chunks of a ring that are summed up: where they are lost, replicas differ."""
    mix: Bound = 0.0
    """Parameters, for peers that mix them."""


AnyBound = Annotated[
    Annotated[Bound, Tag("number")] | Annotated[StageBounds, Tag("stages")],
    Discriminator(lambda given: "stages" if isinstance(given, Mapping | StageBounds) else "number"),
]


class LossPhase(Model):
    """Bounds that are tighter or wider from an iteration on."""

    since: Annotated[int, Field(alias="from", ge=0)]
    """The iteration of the message."""
    factor: Annotated[float, Field(ge=0, le=1000)]
    """Bounds of `loss_bound` and `by_tensor` are multiplied by it."""


class Dlcp(Model):
    """A message arrives when no more of it is missing than a bound lets be, and its packets in any order (DLCP: Wang et
    al., arXiv 2008.08445; MLT, NSDI'24). Of simulated packets, or UDP between real nodes."""

    kind: Literal["dlcp"] = "dlcp"
    loss_bound: AnyBound = 0.1
    """What part of a message's bytes may be lost: a number, or one for each stage, with 0 for those that are not named.
    The default is the value of the paper's evaluations."""
    by_tensor: dict[str, Bound] = Field(default_factory=dict)
    """Bounds of variables by their names, or ends of names such as `weight`, the longest that fits. If any are given,
    each variable's bytes are counted by themselves; they hold in stages that may lose anything, for dense messages."""
    phases: list[LossPhase] = Field(default_factory=list)
    """Factors on the bounds by iteration, as for a critical beginning (as DBLP, arXiv 2605.01989, has it): each from
    its iteration until the next one's. Messages that name no iteration, pairwise averaging's, have none."""
    fill: Literal["zero", "rescale", "stale"] = "zero"
    """What takes the place of gradients that are missing: nothing (the paper's), which makes sums too small; nothing,
    while the rest of the message is scaled up, right in the mean; or those of the sender's previous message. Missing
    parameters are always those of the previous message, and the first one has to be whole."""
    drop: Literal["none", "layer", "magnitude", "layer+magnitude"] = "layer+magnitude"
    """Which packets switches drop early, where they mark the others: none, those of front layers, those of small
    gradients, or those that are both."""
    front: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Part of the variables that counts as front layers (chosen here)."""
    quantile: Annotated[float, Field(ge=0, le=1)] = 0.5
    """A packet is of large gradients where its mean magnitude is at least this quantile of its variable's packets'
    (chosen here)."""
    order: Literal["layer", "none"] = "layer"
    """Whether front layers come first in switches' queues, and large gradients before small ones: those of front layers
    first of the large, and last of the small, which are the first to be missing."""
    stop_early: bool = True
    """Whether the receiver ends a message as soon as little enough is missing; otherwise it waits until all packets
    have been sent once."""
    congestion_control: Literal["dctcp", "none"] = "dctcp"
    """Whether a window follows marks and losses, as DCTCP's does, or packets go as fast as the machine sends them."""
    initial_window: InitialWindow = 10
    """Packets that a connection begins with (chosen here)."""
    least_timeout: PositiveDuration = 0.01
    """At least so long after a round trip without feedback all that is under way is taken for lost (chosen here)."""

    @property
    def bounds(self) -> dict[str, float]:
        """What part may be lost in each stage, before `phases`."""
        if isinstance(self.loss_bound, StageBounds):
            return self.loss_bound.model_dump()
        return dict.fromkeys(StageBounds.model_fields, self.loss_bound)

    def by_variable(self, names: Sequence[str]) -> list[float | None]:
        """The bound of its own that each of a model's variables has, by their names.

        Raises InputError for a bound of a variable that the model does not have.
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

AnyTransport = Annotated[
    Annotated[Transport, Field(discriminator="kind")],
    BeforeValidator(
        lambda given: {"kind": given} if isinstance(given, str) else given,
        json_schema_input_type=Literal["reliable", "pfabric", "dlcp"] | Transport,
    ),
]
"""A plain name is short for {kind: name}."""
