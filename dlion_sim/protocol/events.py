"""What happens to a worker, and what a worker asks for. Plain data: the drivers turn one into the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from dlion_sim.protocol.messages import Message


@dataclass(frozen=True, slots=True)
class Started:
    """Begin.

    `joining`: the run may be under way, and this worker has nothing but its initial parameters. As it is not connected
    with anybody yet, it is told PeerFound, or PeerLost, of every neighbour but those that its setup has as `absent`.
    """

    joining: bool = False


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
    """A peer is gone before it has done its part; nothing from it arrives any more, unless it is found again."""

    peer: int


@dataclass(frozen=True, slots=True)
class PeerFound:
    """There is a connection with a peer that was lost, or never there. Both ends are told, before any message on it."""

    peer: int


@dataclass(frozen=True, slots=True)
class Leave:
    """The machine goes at `deadline` (seconds since the run's start; None: when the worker is ready to).

    The worker is to leave in good order, which ends with `Left`.
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


@dataclass(frozen=True, slots=True)
class Joined:
    """The worker takes part from `iteration` on.

    It has the state of `sponsor`, which took `seconds` since it was started; None: nobody had any, and it begins with
    the initial parameters.
    """

    iteration: int
    sponsor: int | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Elimination:
    """All that the worker had to send on the data channel has left: it has ended in good order."""


Action = Profile | Compute | Send | Report | Stop | Abort | Joined | Elimination
