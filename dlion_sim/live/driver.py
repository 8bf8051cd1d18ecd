"""The wall-clock driver: turns a participant's actions into frames and computations, and those into events again."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, assert_never

from torch import Tensor

from dlion_sim.assembly import Recorder, Transfer
from dlion_sim.errors import InputError
from dlion_sim.live.frames import Kind, News
from dlion_sim.live.machine import Machine
from dlion_sim.live.mesh import Mesh
from dlion_sim.live.rendezvous import Rendezvous
from dlion_sim.live.roster import Roster
from dlion_sim.live.timeouts import Timeouts
from dlion_sim.protocol.events import (
    Abort,
    Compute,
    Event,
    GradientReady,
    MessageArrived,
    MessageSent,
    MessageTimed,
    PeerLost,
    Profile,
    ProfileReady,
    Report,
    Send,
    Started,
    Stop,
)
from dlion_sim.protocol.messages import Message
from dlion_sim.protocol.server import ParameterServer
from dlion_sim.protocol.worker import Worker
from dlion_sim.results import Ending, Status

_LOG = logging.getLogger(__name__)
_GOOD_BYE_SECONDS = 5.0
"""For which a node whose time is over waits for the others' clocks to come to it, too."""


@dataclass(frozen=True)
class Snapshot:
    """A worker's parameters [P] as they were at a time, after so many iterations. To be evaluated after the run."""

    time: float
    iteration: int
    parameters: Tensor


@dataclass(frozen=True)
class Plan:
    """Who takes part, and when there is something to do: seconds since the start."""

    workers: int
    participants: int
    same_machine: Collection[int]
    """Those to whom messages cross no link, and are no traffic."""
    duration: float | None
    evaluate_every: float


class Driver:
    """Runs participant `rank`: a worker on its machine, or a parameter server, which has none.

    All begin once each of them has all its connections: everyone passes on of whom it has heard that. A worker that has
    done its part says so and answers its peers until they have done theirs.
    """

    def __init__(
        self,
        rank: int,
        participant: Worker | ParameterServer,
        machine: Machine | None,
        peers: Sequence[int],
        *,
        plan: Plan,
        recorder: Recorder,
        timeouts: Timeouts,
        begun: Callable[[], None],
        tasks: asyncio.TaskGroup,
    ) -> None:
        self._rank = rank
        self._participant = participant
        self._machine = machine
        self._plan = plan
        self._recorder = recorder
        self._timeouts = timeouts
        self._tell_begun = begun
        self._tasks = tasks
        self._spawned: set[asyncio.Task[None]] = set()
        self._end: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        self._everyone_ready = asyncio.Event()
        self._began: float | None = None
        workers = [peer for peer in peers if peer < plan.workers]
        self._roster = Roster(rank, plan.participants, workers, serves=isinstance(participant, ParameterServer))
        self._settled = asyncio.Event()
        self._is_written_down = False
        """Whether all is that belongs to the run; what leaves during the good-byes does not."""
        self._turn = 0
        """Whose messages leave first."""
        self.snapshots: list[Snapshot] = []

    @property
    def now(self) -> float:
        """Seconds since the start."""
        return 0.0 if self._began is None else time.monotonic() - self._began

    @property
    def gone(self) -> Mapping[int, str]:
        """Why who was lost, in the order in which that was heard."""
        return self._roster.gone

    async def run(self, links: Mesh, rendezvous: Rendezvous) -> Ending:
        """Run until a stop rule holds, or it cannot go on. Raises InputError where it cannot start."""
        self._links = links
        self._spawn(self._start(rendezvous))
        ending = await self._end
        self._observe(ending.seconds)
        self._observe_unfinished(ending.seconds)
        if ending.status == "completed":
            await self._say_good_bye()
        for task in self._spawned:
            task.cancel()
        await links.close()
        return ending

    def interrupt(self) -> None:
        """End the run early."""
        self._finish("interrupted", "interrupt")

    def arrived(self, message: Message) -> None:
        """A message; whoever sends one has begun, so that all are ready.

        Raises MalformedMessageError for one that no honest peer sends.
        """
        self._begin()
        self._tell(MessageArrived(message))

    def left(self, transfer: Transfer) -> None:
        """A message has left this machine."""
        if transfer.receiver not in self._plan.same_machine and not self._is_written_down:
            self._recorder.sent(transfer, self.now)

    def sent(self, peer: int, message: Message) -> None:
        """A message on the data channel has left, or never will."""
        self._tell(MessageSent(peer, message.size))

    def timed(self, peer: int, message: Message, seconds: float) -> None:
        """The link took so many seconds for a message on the data channel."""
        self._tell(MessageTimed(peer, message.size, seconds))

    def heard(self, kind: News, rank: int) -> None:
        """News from a peer; what concerns all is passed on, once."""
        match kind:
            case Kind.READY:
                self._note_ready(rank)
            case Kind.DONE:
                self._roster.done(rank)
                self._settle()
            case Kind.GONE:
                if not self._end.done() and self._roster.missed(rank):
                    self._pass_on(rank)
            case _:
                assert_never(kind)

    def lost(self, peer: int, reason: str) -> None:
        """A peer's connections have ended, which is no loss once it has said that it is done."""
        if self._end.done() or self._roster.is_done(peer):
            return
        if self._began is None:
            raise InputError(f"node {peer} was lost before the start: it {reason}")
        if self._roster.lost(peer, f"it {reason}"):
            self._pass_on(peer)
        self._tell(PeerLost(peer))
        self._settle()

    async def _start(self, rendezvous: Rendezvous) -> None:
        """Connect, wait for all others, begin."""
        try:
            async with asyncio.timeout(self._timeouts.start):
                self._links.begin(await rendezvous.meet())
                self._note_ready(self._rank)
                await self._everyone_ready.wait()
        except TimeoutError:
            missing = rendezvous.missing() or [f"node {rank} is not ready" for rank in self._roster.unready]
            raise InputError(f"could not start within {self._timeouts.start:g} s: {'; '.join(missing)}") from None
        self._begin()

    def _begin(self) -> None:
        if self._began is not None:
            return
        self._began = time.monotonic()
        self._tell_begun()
        if self._plan.duration is not None:
            asyncio.get_running_loop().call_later(self._plan.duration, self._finish, "completed", "duration")
        self._spawn(self._observe_regularly())
        self._tell(Started())

    def _tell(self, event: Event, at: float | None = None) -> None:
        """Hand an event of that time, by default now, to the participant and do what it asks for.

        A computation begins at the time of the event that led to it: what is between counts as a part of it, as the
        fixed cost of a modelled iteration stands for updating and serialising, too.
        """
        at = self.now if at is None else at
        if self._end.done() or self._is_over(at):
            return
        sends: list[Send] = []
        for action in self._participant.handle(event, at):
            if isinstance(action, Send):
                sends.append(action)
                continue
            self._send(sends)
            match action:
                case Compute():
                    self._spawn(self._compute(action.batch_size, at))
                case Report():
                    self._recorder.iteration(self._rank, action, at)
                case Profile():
                    self._spawn(self._profile(action.batch_sizes, at))
                case Stop():
                    self._say_done()
                case Abort():
                    lost = ", ".join(f"node {rank} ({reason})" for rank, reason in self.gone.items())
                    self._finish("failed", f"{action.reason}; lost: {lost}")
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
            self._links.send(send.peer, send.message)
        sends.clear()

    async def _compute(self, batch_size: int, at: float) -> None:
        assert self._machine is not None
        done = await self._machine.gradient(batch_size, at, self.now - at)
        if done.stall:
            self._recorder.fed(self._rank, done.stall)
        if done.arrivals:
            self._recorder.arrivals(self._rank, *done.arrivals, at)
        self._tell(GradientReady(done.loss, done.gradient, done.seconds), self._ended(at + done.seconds))

    async def _profile(self, batch_sizes: Sequence[int], at: float) -> None:
        assert self._machine is not None
        measurements = await self._machine.profile(batch_sizes, at, self.now - at)
        took = sum(seconds for _, seconds in measurements)
        ended = self._ended(at + took)
        self._recorder.profiled(self._rank, took, self.now if ended is None else ended)
        self._tell(ProfileReady(measurements), ended)

    def _ended(self, due: float) -> float | None:
        """When a computation ended: when it was due if it was held back until then, and just now otherwise."""
        return due if self._machine is not None and self._machine.is_paced else None

    async def _observe_regularly(self) -> None:
        count = 0
        while not self._end.done():
            self._observe(count * self._plan.evaluate_every)
            count += 1
            await asyncio.sleep(count * self._plan.evaluate_every - self.now)

    def _observe(self, now: float) -> None:
        """Keep the parameters as they are, for evaluation, and write down what the links have carried."""
        if isinstance(self._participant, Worker):
            if self.snapshots and self.snapshots[-1].time >= now:
                self.snapshots.pop()
            replica = self._participant.replica
            self.snapshots.append(Snapshot(now, self._participant.iteration, replica.snapshot()))
        for transfer, size in self._under_way():
            self._recorder.carried(transfer, size)
        self._recorder.end_interval(now)
        self._recorder.flush()

    def _observe_unfinished(self, now: float) -> None:
        """Write down what the end of the run cuts off."""
        for transfer, _ in self._under_way():
            self._recorder.cut_off(transfer)
        if isinstance(self._participant, Worker):
            self._recorder.unfinished(self._rank, self._participant.unfinished(now), now)
        self._is_written_down = True

    def _under_way(self) -> Iterator[tuple[Transfer, float]]:
        """The messages under way to other machines, and how many of their bytes have arrived."""
        return (each for each in self._links.under_way() if each[0].receiver not in self._plan.same_machine)

    def _say_done(self) -> None:
        if self._roster.done(self._rank):
            self._links.tell(Kind.DONE)
            self._settle()

    def _settle(self) -> None:
        if self._roster.settled:
            self._settled.set()
            self._finish("completed", "iterations")

    async def _say_good_bye(self) -> None:
        """See to it that peers know that this node's end is no loss, and are known to be at theirs."""
        self._say_done()
        with suppress(TimeoutError):
            async with asyncio.timeout(_GOOD_BYE_SECONDS):
                await self._settled.wait()

    def _note_ready(self, rank: int) -> None:
        if self._roster.ready(rank):
            self._links.tell(Kind.READY, rank)
            if not self._roster.unready:
                self._everyone_ready.set()

    def _pass_on(self, lost: int) -> None:
        """Tell the others of a loss."""
        _LOG.warning("node %d has lost node %d: %s", self._rank, lost, self.gone[lost])
        self._links.tell(Kind.GONE, lost)

    def _is_over(self, at: float) -> bool:
        """Whether the run's duration is over by then; the loop may be late to tell so."""
        return self._plan.duration is not None and at > self._plan.duration

    def _finish(self, status: Status, stopped_by: str) -> None:
        if not self._end.done():
            now = self._plan.duration if stopped_by == "duration" and self._plan.duration is not None else self.now
            self._end.set_result(Ending(status, stopped_by, now))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._tasks.create_task(work)
        self._spawned.add(task)
        task.add_done_callback(self._spawned.discard)
