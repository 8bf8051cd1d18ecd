"""A participant on wall clocks: its actions become messages and computations, and the results events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, assert_never

from dlion_sim.assembly import Recorder
from dlion_sim.live.member import Member
from dlion_sim.protocol.events import (
    Abort,
    Compute,
    Event,
    GradientReady,
    Joined,
    LeaveCompleted,
    Profile,
    ProfileReady,
    Report,
    Send,
    Stop,
)

if TYPE_CHECKING:
    from dlion_sim.live.driver import Driver

Decision = Stop | Joined | LeaveCompleted | Abort
"""A participant's decisions on its part in the run."""


class Participation:
    """Runs participant `rank` on its node."""

    def __init__(self, rank: int, member: Member, recorder: Recorder, node: Driver) -> None:
        self._rank = rank
        self._participant = member.participant
        self._machine = member.machine
        self._recorder = recorder
        self._node = node
        self.batch_size: int | None = None
        """The samples of the gradient that is being computed, if one is."""
        self._turn = 0
        """The peer whose messages leave first."""

    def tell(self, event: Event, at: float | None = None) -> None:
        """Hand an event of that time, by default now, to the participant and perform its actions.

        A computation begins at the time of the event that caused it: the time in between is a part of it, as a modelled
        iteration's fixed cost includes updating and serialising.
        """
        at = self._node.now if at is None else at
        if self._node.is_over(at):
            return
        sends: list[Send] = []
        for action in self._participant.handle(event, at):
            if isinstance(action, Send):
                sends.append(action)
                continue
            self._send(sends)
            match action:
                case Compute():
                    self._node.spawn(self._compute(action.batch_size, at))
                case Report():
                    self._recorder.iteration(self._rank, action, at)
                case Profile():
                    self._node.spawn(self._profile(action.batch_sizes, at))
                case Stop() | Joined() | LeaveCompleted() | Abort():
                    self._node.decided(action, at)
                case _:
                    assert_never(action)
        self._send(sends)

    def _send(self, sends: list[Send]) -> None:
        """Send all of `sends`, to another peer first each time, and empty it.

        The first message has the machine's link to itself for a moment. If that were always the same peer's, DLion
        would find that peer's link better than others, and send it more and more.
        """
        order = {peer: place for place, peer in enumerate(sorted({send.peer for send in sends}))}
        if len(order) > 1:
            self._turn += 1
            sends.sort(key=lambda send: (order[send.peer] - self._turn) % len(order))
        for send in sends:
            self._node.send(send.peer, send.message)
        sends.clear()

    async def _compute(self, batch_size: int, at: float) -> None:
        assert self._machine is not None
        self.batch_size = batch_size
        done = await self._machine.gradient(batch_size, at, self._node.now - at)
        self.batch_size = None
        if done.stall:
            self._recorder.fed(self._rank, done.stall)
        if done.arrivals:
            self._recorder.arrivals(self._rank, *done.arrivals, at)
        self.tell(GradientReady(done.loss, done.gradient, done.seconds), self._ended(at + done.seconds))

    async def _profile(self, batch_sizes: Sequence[int], at: float) -> None:
        assert self._machine is not None
        measurements = await self._machine.profile(batch_sizes, at, self._node.now - at)
        took = sum(seconds for _, seconds in measurements)
        ended = self._ended(at + took)
        self._recorder.profiled(self._rank, took, self._node.now if ended is None else ended)
        self.tell(ProfileReady(measurements), ended)

    def _ended(self, due: float) -> float | None:
        """When a computation ended: when it was due if it is paced, and just now otherwise."""
        return due if self._machine is not None and self._machine.is_paced else None
