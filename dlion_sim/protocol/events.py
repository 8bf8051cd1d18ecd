"""Events, which a driver hands to a worker or server, and actions, which these return. Plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from dlion_sim.protocol.messages import Message


class LocalProtocolError(RuntimeError):
    """A driver handed a participant an event that cannot happen in its present state."""


@dataclass(frozen=True, slots=True)
class Started:
    """Begin.

    `joining`: the run may be in progress, and this worker has nothing but its initial parameters. PeerFound or PeerLost
    follows for every neighbour that is not `absent` in its setup.
    """

    joining: bool = False


@dataclass(frozen=True, slots=True)
class ProfileReady:
    """The result of `Profile`: (batch size, seconds) each."""

    measurements: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class GradientReady:
    """The result of `Compute`: mean loss, mean gradient [P], seconds that it took."""

    loss: float
    gradient: Tensor
    seconds: float


@dataclass(frozen=True, slots=True)
class MessageArrived:
    """A peer's message has arrived, complete."""

    message: Message


@dataclass(frozen=True, slots=True)
class MessageSent:
    """A message of `size` bytes on the data channel to `peer` has been sent to its last byte, or dropped."""

    peer: int
    size: int


@dataclass(frozen=True, slots=True)
class MessageTimed:
    """The link to `peer` took `seconds` for a message of `size` bytes on the data channel, without its time in queues.

    It may come some time after `MessageSent`.
    """

    peer: int
    size: int
    seconds: float


@dataclass(frozen=True, slots=True)
class LinkCapacity:
    """The true bandwidths of the link to `peer` from now on (bytes per second), which only a simulation knows.

    `alone` is that of a single flow; `shared` is its share if every worker sends to all its peers at once.
    """

    peer: int
    alone: float
    shared: float


@dataclass(frozen=True, slots=True)
class PeerLost:
    """The connection to a peer is lost: nothing arrives from it until `PeerFound`."""

    peer: int


@dataclass(frozen=True, slots=True)
class PeerFound:
    """There is a new connection to a peer. Both ends get this event before any message over it."""

    peer: int


@dataclass(frozen=True, slots=True)
class Leave:
    """The machine stops at `deadline` (seconds since the run's start; None: as soon as the worker has left).

    The worker leaves gracefully, which ends with `LeaveCompleted`.
    """

    deadline: float | None = None


Event = (
    Started
    | ProfileReady
    | GradientReady
    | MessageArrived
    | MessageSent
    | MessageTimed
    | LinkCapacity
    | PeerLost
    | PeerFound
    | Leave
)


@dataclass(frozen=True, slots=True)
class Profile:
    """Time a gradient computation of each of these batch sizes, one after another; gradients are discarded."""

    batch_sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Compute:
    """Compute the gradient of the next `batch_size` samples at the present parameters."""

    batch_size: int


@dataclass(frozen=True, slots=True)
class Send:
    """Queue a message to a peer; messages of one channel to one peer arrive in order."""

    peer: int
    message: Message


@dataclass(frozen=True, slots=True)
class Report:
    """Measurements of a completed iteration.

    `staleness` is the mean number of iterations by which the applied remote gradients lag behind this one (negative:
    lead), None when none was applied. `waited_for` is the peer whose message ended the wait, and `wait_reason` that
    message's kind; "queue" if a message to the peer had to leave, "lost" if the peer was lost. None without a wait.
    `dropped`: see `Exchange.dropped`.
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
    dropped: float | None = None


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Measurements of an iteration that was not completed, at the end of the run or of the worker.

    `waited_for` is the peer furthest behind of those that it waits for, if known.
    """

    kind: Literal["profile", "unfinished"]
    iteration: int
    compute_seconds: float
    wait_seconds: float = 0.0
    waited_for: int | None = None
    wait_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Stop:
    """The worker has completed all its iterations. It still answers its peers."""


@dataclass(frozen=True, slots=True)
class Abort:
    """The participant can never continue, with the reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class Joined:
    """The worker is a member from `iteration` on, `seconds` after its start.

    It has the state of `sponsor`; None: there were no members, and it begins with the initial parameters.
    """

    iteration: int
    sponsor: int | None
    seconds: float


@dataclass(frozen=True, slots=True)
class LeaveCompleted:
    """The worker has left gracefully: all its data has been sent."""


Action = Profile | Compute | Send | Report | Stop | Abort | Joined | LeaveCompleted
