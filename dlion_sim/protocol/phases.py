"""A worker's phases, and the table of all transitions between them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from dlion_sim.protocol.events import Event, GradientReady, LocalProtocolError, ProfileReady, Started


class Phase(Enum):
    """The state of a worker."""

    READY = "ready"
    JOINING = "joining"
    """It joins a run in progress, and waits for state."""
    PROFILING = "profiling"
    COMPUTING = "computing"
    WAITING = "waiting"
    CATCHING_UP = "catching up"
    """It has skipped iterations, and waits for its peers' contributions to them."""
    RESTING = "resting"
    """The exchange has nothing for it to do."""
    STOPPED = "stopped"
    LEAVING = "leaving"
    """It has announced that it leaves, and waits until its last messages have been sent."""


class Move(Enum):
    """A transition that the worker decides itself."""

    JOIN = "request state"
    PROFILE = "time batch sizes"
    COMPUTE = "begin an iteration"
    REST = "rest"
    CATCH_UP = "skip iterations"
    FINISH = "complete the last iteration"
    ABORT = "abort, as it cannot continue without a peer"
    LEAVE = "leave"


_BEGINS: Mapping[type[Event] | Move, Phase] = {Move.COMPUTE: Phase.COMPUTING, Move.REST: Phase.RESTING}
_ENDS: Mapping[type[Event] | Move, Phase] = {
    Move.FINISH: Phase.STOPPED,
    Move.ABORT: Phase.STOPPED,
    Move.LEAVE: Phase.LEAVING,
}
TRANSITIONS: Mapping[Phase, Mapping[type[Event] | Move, Phase]] = {
    Phase.READY: {
        Started: Phase.READY,
        Move.JOIN: Phase.JOINING,
        Move.PROFILE: Phase.PROFILING,
        **_BEGINS,
        **_ENDS,
    },
    Phase.JOINING: {Move.PROFILE: Phase.PROFILING, **_BEGINS, **_ENDS},
    Phase.PROFILING: {ProfileReady: Phase.PROFILING, **_BEGINS, **_ENDS},
    Phase.COMPUTING: {GradientReady: Phase.WAITING, Move.ABORT: Phase.STOPPED, Move.LEAVE: Phase.LEAVING},
    Phase.WAITING: {**_BEGINS, Move.CATCH_UP: Phase.CATCHING_UP, **_ENDS},
    Phase.CATCHING_UP: {**_BEGINS, **_ENDS},
    Phase.RESTING: {Move.COMPUTE: Phase.COMPUTING, **_ENDS},
    # A computation that was running when it stopped or left still completes.
    Phase.STOPPED: {ProfileReady: Phase.STOPPED, GradientReady: Phase.STOPPED, Move.LEAVE: Phase.LEAVING},
    Phase.LEAVING: {ProfileReady: Phase.LEAVING, GradientReady: Phase.LEAVING},
}
"""Other events may occur in every phase and change none by themselves."""


def after(phase: Phase, what: type[Event] | Move) -> Phase:
    """The phase after `what`. Raises LocalProtocolError if it cannot happen in `phase`."""
    if what not in TRANSITIONS[phase]:
        name = what.value if isinstance(what, Move) else what.__name__
        raise LocalProtocolError(f"'{name}' cannot happen to a worker that is {phase.value}")
    return TRANSITIONS[phase][what]
