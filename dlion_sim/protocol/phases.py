"""What a worker is doing, what may happen to it then, and what it does after that: the whole of it in one table."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from dlion_sim.protocol.events import Event, GradientReady, ProfileReady, Started
from dlion_sim.protocol.faults import LocalProtocolError


class Phase(Enum):
    """What a worker is doing."""

    READY = "ready"
    JOINING = "joining"
    """The run is under way, and it fetches the state that others have."""
    PROFILING = "profiling"
    COMPUTING = "computing"
    WAITING = "waiting"
    CATCHING_UP = "catching up"
    """It has left out iterations, and waits for what its peers came to in them."""
    STOPPED = "stopped"
    LEAVING = "leaving"
    """It has taken leave of its peers, and waits for what it sent to have left."""


class Move(Enum):
    """What a worker decides itself, once it has taken in what has happened."""

    JOIN = "ask others for their state"
    PROFILE = "time some batch sizes"
    COMPUTE = "begin an iteration"
    CATCH_UP = "leave out iterations"
    FINISH = "all iterations are done"
    GIVE_UP = "it cannot go on without a peer"
    LEAVE = "take leave"


TRANSITIONS: Mapping[Phase, Mapping[type[Event] | Move, Phase]] = {
    Phase.READY: {
        Started: Phase.READY,
        Move.JOIN: Phase.JOINING,
        Move.PROFILE: Phase.PROFILING,
        Move.COMPUTE: Phase.COMPUTING,
        Move.FINISH: Phase.STOPPED,
        Move.GIVE_UP: Phase.STOPPED,
        Move.LEAVE: Phase.LEAVING,
    },
    Phase.JOINING: {
        Move.PROFILE: Phase.PROFILING,
        Move.COMPUTE: Phase.COMPUTING,
        Move.FINISH: Phase.STOPPED,
        Move.GIVE_UP: Phase.STOPPED,
        Move.LEAVE: Phase.LEAVING,
    },
    Phase.PROFILING: {
        ProfileReady: Phase.PROFILING,
        Move.COMPUTE: Phase.COMPUTING,
        Move.FINISH: Phase.STOPPED,
        Move.GIVE_UP: Phase.STOPPED,
        Move.LEAVE: Phase.LEAVING,
    },
    Phase.COMPUTING: {
        GradientReady: Phase.WAITING,
        Move.GIVE_UP: Phase.STOPPED,
        Move.LEAVE: Phase.LEAVING,
    },
    Phase.WAITING: {
        Move.COMPUTE: Phase.COMPUTING,
        Move.CATCH_UP: Phase.CATCHING_UP,
        Move.FINISH: Phase.STOPPED,
        Move.GIVE_UP: Phase.STOPPED,
        Move.LEAVE: Phase.LEAVING,
    },
    Phase.CATCHING_UP: {
        Move.COMPUTE: Phase.COMPUTING,
        Move.FINISH: Phase.STOPPED,
        Move.GIVE_UP: Phase.STOPPED,
        Move.LEAVE: Phase.LEAVING,
    },
    # What was under way when it gave up, or left, still comes to its end.
    Phase.STOPPED: {
        ProfileReady: Phase.STOPPED,
        GradientReady: Phase.STOPPED,
        Move.LEAVE: Phase.LEAVING,
    },
    Phase.LEAVING: {
        ProfileReady: Phase.LEAVING,
        GradientReady: Phase.LEAVING,
    },
}
"""Messages, links, losses and returns are news in every phase, and none of them leads to another by itself."""


def after(phase: Phase, what: type[Event] | Move) -> Phase:
    """The phase that `what` leads to. Raises LocalProtocolError where it cannot happen."""
    if what not in TRANSITIONS[phase]:
        name = what.value if isinstance(what, Move) else what.__name__
        raise LocalProtocolError(f"'{name}' cannot happen to a worker that is {phase.value}")
    return TRANSITIONS[phase][what]
