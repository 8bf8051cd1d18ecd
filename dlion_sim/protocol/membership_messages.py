"""What workers, and servers, say to each other when one of them comes or goes."""

from __future__ import annotations

from typing import ClassVar

from dlion_sim.protocol.messages import Body, Channel, Count, Shapes, is_one

_MOST_WORKERS = 2**20
"""Of whose contributions a newcomer may be told, however small the model."""


class Hello(Body, frozen=True, array_like=True):
    """The first thing to be said over a new connection: how the sender stands.

    A member says that the receiver gets all that it sends of iteration `first` and later ones; in which `iteration` it
    is, its last training loss, and the bytes of data that it has queued. A newcomer says that it is none (`member`
    false, and all else 0), and says this again as soon as it is one.
    """

    kind: ClassVar[str] = "hello"
    first: Count
    iteration: Count
    loss: float
    queued: Count
    member: bool


class Begins(Body, frozen=True, array_like=True):
    """A newcomer's answer to a member's `Hello`: it takes part from `iteration` on."""

    kind: ClassVar[str] = "begins"
    iteration: Count


class StateRequest(Body, frozen=True, array_like=True):
    """The sender asks for the receiver's state in `iteration`, or as soon as it is in a later one."""

    kind: ClassVar[str] = "state?"
    iteration: Count


class State(Body, frozen=True, array_like=True):
    """A part of the sender's state at the beginning of `iteration` (values [m]); `part` counts from 0 to `parts` - 1.

    The first part of a worker's tells of how many iterations the contributions of each worker are in it.
    """

    kind: ClassVar[str] = "state"
    channel: ClassVar[Channel] = Channel.WEIGHTS
    iteration: Count
    part: Count
    parts: Count

    def fits(self, shapes: Shapes, parameters: int) -> bool:
        return self.part < self.parts and is_one(shapes, "f4", max(parameters, 0 if self.part else _MOST_WORKERS))


class Leaving(Body, frozen=True, array_like=True):
    """The sender takes no part in `iteration` or any later one: what it contributed is all there."""

    kind: ClassVar[str] = "leaving"
    channel: ClassVar[Channel] = Channel.DATA
    iteration: Count


MEMBERSHIP: frozenset[type[Body]] = frozenset({Hello, Begins, StateRequest, State, Leaving})
"""What says nothing to a worker's choices."""
