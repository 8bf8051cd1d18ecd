"""What happens to a worker, and what a worker asks for. Plain data: the drivers turn one into the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from dlion_sim.protocol.messages import Message


@dataclass(frozen=True, slots=True)
class Started:
    """All workers are ready: begin."""


@dataclass(frozen=True, slots=True)
class ProfileReady:
    """The measurements that `Profile` asked for: (batch size, seconds) each."""

    measurements: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class GradientReady:
    """The gradient that `Compute` asked for: mean loss, mean gradient [P], seconds that it took."""

    loss: float
    gradient: Tensor
    seconds: float


@dataclass(frozen=True, slots=True)
class MessageArrived:
    """A peer's message is here, whole."""

    message: Message


@dataclass(frozen=True, slots=True)
class MessageSent:
    """The last byte of a message of `size` bytes on the data channel to `peer` has left, or never will."""

    peer: int
    size: int


@dataclass(frozen=True, slots=True)
class MessageTimed:
    """The link to `peer` took `seconds` for a message of `size` bytes on the data channel, its wait in the queue apart.

    That may be known only some time after it has left.
    """

    peer: int
    size: int
    seconds: float


@dataclass(frozen=True, slots=True)
class LinkCapacity:
    """What only an oracle knows: the bandwidths of the link to `peer` from now on, in bytes per second.

    `alone` is that of a single flow; `shared` is its part when every worker sends to all its peers at once.
    """

    peer: int
    alone: float
    shared: float


@dataclass(frozen=True, slots=True)
class PeerLost:
    """A peer is gone for good before it has done its part; nothing from it arrives any more."""

    peer: int


Event = Started | ProfileReady | GradientReady | MessageArrived | MessageSent | MessageTimed | LinkCapacity | PeerLost


@dataclass(frozen=True, slots=True)
class Profile:
    """Time one gradient computation of each of these batch sizes, one after another; their results are not used."""

    batch_sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Compute:
    """Compute the gradient of the next `batch_size` samples at the parameters as they are now."""

    batch_size: int


@dataclass(frozen=True, slots=True)
class Send:
    """Queue a message to a peer; those of one channel to one peer arrive in order."""

    peer: int
    message: Message


@dataclass(frozen=True, slots=True)
class Report:
    """An iteration is done: what there is to measure about it.

    `staleness` is the mean number of iterations by which the applied remote gradients lag behind this one (negative:
    lead), None when none was applied. `waited_for` is the peer whose message ended the wait, and `wait_reason` that
    message's kind; "queue" if a message to the peer had to leave, "lost" if the peer was lost. None without a wait.
    """

    iteration: int
    loss: float
    batch_size: int
    global_batch_size: int
    staleness: float | None
    applied: int
    merged: int
    compute_seconds: float
    wait_seconds: float
    waited_for: int | None = None
    wait_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Unfinished:
    """What a worker has come to since its last iteration ended: told where its run ends.

    `waited_for` is the peer that is furthest behind of those that it still waits for, where these are known.
    """

    kind: Literal["profile", "unfinished"]
    iteration: int
    compute_seconds: float
    wait_seconds: float = 0.0
    waited_for: int | None = None
    wait_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Stop:
    """The worker has done all its iterations. It still answers its peers."""


@dataclass(frozen=True, slots=True)
class Abort:
    """The participant can never go on, and why."""

    reason: str


Action = Profile | Compute | Send | Report | Stop | Abort
