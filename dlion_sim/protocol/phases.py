"""What a worker is doing, what may happen to it then, and what it does after that: the whole of it in one table."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from dlion_sim.protocol.events import Event, GradientReady, ProfileReady, Started
from dlion_sim.protocol.faults import LocalProtocolError


class Phase(Enum):
    """What a worker is doing."""

    READY = "ready"
    PROFILING = "profiling"
    COMPUTING = "computing"
    WAITING = "waiting"
    CATCHING_UP = "catching up"
    """It has left out iterations, and waits for what its peers came to in them."""
    STOPPED = "stopped"


class Move(Enum):
    """What a worker decides itself, once it has taken in what has happened."""

    PROFILE = "time some batch sizes"
    COMPUTE = "begin an iteration"
    CATCH_UP = "leave out iterations"
    FINISH = "all iterations are done"
    GIVE_UP = "it cannot go on without a peer"


TRANSITIONS: Mapping[Phase, Mapping[type[Event] | Move, Phase]] = {
    Phase.READY: {
        Started: Phase.READY,
        Move.PROFILE: Phase.PROFILING,
        Move.COMPUTE: Phase.COMPUTING,
        Move.FINISH: Phase.STOPPED,
        Move.GIVE_UP: Phase.STOPPED,
    },
    Phase.PROFILING: {
        ProfileReady: Phase.PROFILING,
        Move.COMPUTE: Phase.COMPUTING,
        Move.FINISH: Phase.STOPPED,
        Move.GIVE_UP: Phase.STOPPED,
    },
    Phase.COMPUTING: {
        GradientReady: Phase.WAITING,
        Move.GIVE_UP: Phase.STOPPED,
    },
    Phase.WAITING: {
        Move.COMPUTE: Phase.COMPUTING,
        Move.CATCH_UP: Phase.CATCHING_UP,
        Move.FINISH: Phase.STOPPED,
        Move.GIVE_UP: Phase.STOPPED,
    },
    Phase.CATCHING_UP: {
        Move.COMPUTE: Phase.COMPUTING,
        Move.FINISH: Phase.STOPPED,
        Move.GIVE_UP: Phase.STOPPED,
    },
    # What was under way when it gave up still comes to its end.
    Phase.STOPPED: {
        ProfileReady: Phase.STOPPED,
        GradientReady: Phase.STOPPED,
    },
}
"""Messages, links and losses are news in every phase, and none of them leads to another by itself."""


def after(phase: Phase, what: type[Event] | Move) -> Phase:
    """The phase that `what` leads to. Raises LocalProtocolError where it cannot happen."""
    if what not in TRANSITIONS[phase]:
        name = what.value if isinstance(what, Move) else what.__name__
        raise LocalProtocolError(f"'{name}' cannot happen to a worker that is {phase.value}")
    return TRANSITIONS[phase][what]
