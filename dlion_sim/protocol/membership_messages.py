"""The messages by which workers and servers join and leave."""

from __future__ import annotations

from typing import ClassVar

from dlion_sim.protocol.messages import Body, Channel, Count, Shapes, is_one

_MOST_WORKERS = 2**20
"""An upper bound of the workers that a state describes, for models with fewer parameters than workers."""


class Hello(Body, frozen=True, array_like=True):
    """The first message over a new connection: the state of the sender.

    Of a member: the receiver gets all its messages of iteration `first` and later ones; its present `iteration`, its
    last training loss, and its queued bytes of data. A joining worker sends `member` false and all else 0, and another
    hello as soon as it is a member.
    """

    kind: ClassVar[str] = "hello"
    first: Count
    iteration: Count
    loss: float
    queued: Count
    member: bool


class Begins(Body, frozen=True, array_like=True):
    """A joining worker's answer to a member's `Hello`: its first iteration."""

    kind: ClassVar[str] = "begins"
    iteration: Count


class NotBefore(Body, frozen=True, array_like=True):
    """A joining worker, whose first iteration follows from the state, will begin with `iteration` or a later one."""

    kind: ClassVar[str] = "not_before"
    iteration: Count


class StateRequest(Body, frozen=True, array_like=True):
    """The sender requests the receiver's state in `iteration`, or in the first later one."""

    kind: ClassVar[str] = "state?"
    iteration: Count


class State(Body, frozen=True, array_like=True):
    """A part of the sender's state at the beginning of `iteration` (values [m]); `part` counts from 0 to `parts` - 1.

    The first part of a worker's state has the number of iterations of each worker whose contributions are in it.
    """

    kind: ClassVar[str] = "state"
    channel: ClassVar[Channel] = Channel.WEIGHTS
    iteration: Count
    part: Count
    parts: Count

    def fits(self, shapes: Shapes, parameters: int) -> bool:
        return self.part < self.parts and is_one(shapes, "f4", max(parameters, 0 if self.part else _MOST_WORKERS))


class Leaving(Body, frozen=True, array_like=True):
    """The sender takes no part in `iteration` or any later one; all its contributions were sent before."""

    kind: ClassVar[str] = "leaving"
    channel: ClassVar[Channel] = Channel.DATA
    iteration: Count


MEMBERSHIP: frozenset[type[Body]] = frozenset({Hello, Begins, NotBefore, StateRequest, State, Leaving})
"""The kinds of messages that a worker handles itself, not its choices."""
