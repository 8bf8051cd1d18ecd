"""The wall-clock driver: sees to it that a participant begins and ends with the others, and tells it who is there."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, assert_never

from dlion_sim.assembly import Recorder, Transfer
from dlion_sim.errors import InputError
from dlion_sim.live.frames import Kind, News
from dlion_sim.live.machine import Machine
from dlion_sim.live.mesh import Mesh
from dlion_sim.live.node_config import LEFT
from dlion_sim.live.observer import Observer, Snapshot
from dlion_sim.live.pair import Connections
from dlion_sim.live.participation import Decision, Participation
from dlion_sim.live.peer_states import PeerStates
from dlion_sim.live.plan import Plan
from dlion_sim.live.rendezvous import Rendezvous
from dlion_sim.live.timeouts import Timeouts
from dlion_sim.protocol.events import (
    Abort,
    Joined,
    Leave,
    LeaveCompleted,
    MessageArrived,
    MessageSent,
    MessageTimed,
    PeerFound,
    PeerLost,
    Started,
    Stop,
)
from dlion_sim.protocol.membership_messages import State
from dlion_sim.protocol.messages import Message
from dlion_sim.protocol.server import ParameterServer
from dlion_sim.protocol.worker import Worker
from dlion_sim.results import Ending, MembershipRow, Status
from dlion_sim.results.tables import MembershipEvent

_LOG = logging.getLogger(__name__)
_GOOD_BYE_SECONDS = 5.0
"""For which a node whose time is over waits for the others' clocks to come to it, too."""
_EARLY_SECONDS = 0.5
"""By which a notice may come earlier than the scenario has it."""
_FLUSH_SECONDS, _LAST_WORDS_SECONDS = 0.5, 0.03
"""What a node has measured outlives it, where it may be lost, but for so much; less if it is known when it will be."""


class Driver:
    """Runs participant `rank` on its node: a worker on its machine, or a parameter server, which has none.

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
        self._participation = Participation(rank, participant, machine, recorder, self)
        self._plan = plan
        self._recorder = recorder
        self._timeouts = timeouts
        self._tell_begun = begun
        self._tasks = tasks
        self._spawned: set[asyncio.Task[None]] = set()
        self._end: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        self._everyone_ready = asyncio.Event()
        self._began: float | None = None
        self._peers = [peer for peer in peers if peer not in plan.absent]
        workers = [peer for peer in peers if peer < plan.workers]
        serves = isinstance(participant, ParameterServer)
        self._roster = PeerStates(rank, plan.participants, workers, absent=plan.absent, serves=serves)
        self._settled = asyncio.Event()
        self._observer = Observer(rank, participant, recorder, plan.same_machine)
        self._observer.member_since = math.inf if plan.joins else 0.0
        self._early: list[PeerFound | PeerLost] = []
        """What happened before it was known when the run began."""
        self._state_bytes = 0
        """Of others' state that has come."""

    @property
    def now(self) -> float:
        """Seconds since the start."""
        return 0.0 if self._began is None else time.monotonic() - self._began

    @property
    def clock(self) -> float | None:
        """Seconds since the start; None before."""
        return None if self._began is None else self.now

    @property
    def snapshots(self) -> Sequence[Snapshot]:
        """Of the worker's parameters."""
        return self._observer.snapshots

    @property
    def gone(self) -> Mapping[int, str]:
        """Why who was lost, in the order in which that was heard."""
        return self._roster.gone

    async def run(self, links: Mesh, rendezvous: Rendezvous) -> Ending:
        """Run until a stop rule holds, or it cannot go on. Raises InputError where it cannot start."""
        self._links, self._rendezvous = links, rendezvous
        self.spawn(self._start())
        ending = await self._end
        self._observer.end(links, ending.seconds)
        if ending.status == "completed":
            await self._say_good_bye(ending)
        for task in self._spawned:
            task.cancel()
        await links.close()
        return ending

    def interrupt(self) -> None:
        """End the run early."""
        self._finish("interrupted", "interrupt")

    def leave(self) -> None:
        """Leave the run in good order, if that can be done before the machine goes; the others go on."""
        if self._began is None:
            self.interrupt()
            return
        outage = self._plan.next_outage(self.now)
        if outage and outage.kind == "preemption" and outage.begin - outage.notice <= self.now + _EARLY_SECONDS:
            self._participation.tell(Leave(outage.begin))
        else:
            self._participation.tell(Leave(None))

    def arrived(self, message: Message) -> None:
        """A message; whoever sends one has begun, so that all are ready.

        Raises MalformedMessageError for one that no honest peer sends.
        """
        self._begin()
        if isinstance(message.body, State):
            self._state_bytes += message.size
        self._participation.tell(MessageArrived(message))

    def left(self, transfer: Transfer) -> None:
        """A message has left this machine."""
        self._observer.left(transfer, self.now)

    def sent(self, peer: int, message: Message) -> None:
        """A message on the data channel has left, or never will."""
        self._participation.tell(MessageSent(peer, message.size))

    def timed(self, peer: int, message: Message, seconds: float) -> None:
        """The link took so many seconds for a message on the data channel."""
        self._participation.tell(MessageTimed(peer, message.size, seconds))

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
        if self._plan.is_open:
            self._rendezvous.parted(peer)
        if self._end.done():
            return
        if self._roster.is_done(peer):
            self._roster.left(peer)
            if self._plan.is_open:
                self._participation.tell(PeerLost(peer))
            return
        if self._began is None:
            if self._plan.joins:
                return
            raise InputError(f"node {peer} was lost before the start: it {reason}")
        if self._roster.lost(peer, f"it {reason}"):
            self._pass_on(peer)
        self._record(peer, "lost", self._rank)
        self._participation.tell(PeerLost(peer))
        self._settle()

    def met(self, peer: int, connections: Connections) -> None:
        """A peer is connected that was lost, or not there at the start."""
        self._links.connect(peer, connections)
        if self._began is None:
            self._start_at(self._rendezvous.began)
        self._notice(PeerFound(peer))

    def missed(self, peer: int) -> None:
        """A peer could not be reached: who joins has to know."""
        if self._plan.joins:
            self._notice(PeerLost(peer))

    def superseded(self, peer: int) -> None:
        """A peer connects anew: if it was not missed, it is now."""
        self._links.superseded(peer)

    def is_over(self, at: float) -> bool:
        """Whether nothing is to happen any more at that time; the loop may be late to tell so."""
        return self._end.done() or (self._plan.duration is not None and at > self._plan.duration)

    def send(self, peer: int, message: Message) -> None:
        """Queue a message of the participant."""
        self._links.send(peer, message)

    def decided(self, decision: Decision, at: float) -> None:
        """The participant has decided something of its taking part, at that time."""
        match decision:
            case Stop():
                self._say_done()
            case Joined():
                self._observer.member_since = at
                what: MembershipEvent = "begins_anew" if decision.sponsor is None else "joined"
                told = decision.sponsor, decision.seconds, self._state_bytes, decision.iteration
                self._recorder.append(MembershipRow(at, self._rank, 0, what, *told))
            case LeaveCompleted():
                self._record(self._rank, "left")
                self._finish("completed", LEFT)
            case Abort():
                lost = ", ".join(f"node {rank} ({reason})" for rank, reason in self.gone.items())
                self._finish("failed", f"{decision.reason}; lost: {lost}")
            case _:
                assert_never(decision)

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Do some work beside everything else, until the run has ended here."""
        task = self._tasks.create_task(work)
        self._spawned.add(task)
        task.add_done_callback(self._spawned.discard)
        return task

    async def _start(self) -> None:
        """Connect, wait for all others, begin; or, where the run is under way, join whoever is there."""
        meeting = self.spawn(self._rendezvous.run())
        try:
            async with asyncio.timeout(self._timeouts.start):
                if self._plan.joins:
                    self._start_at(self._plan.began)
                    self._rendezvous.attend(self)
                    if self._began is None:
                        self._start_at(await self._rendezvous.beginning())
                    return
                for peer, connections in (await self._rendezvous.meet(self._peers)).items():
                    self._links.connect(peer, connections)
                if not self._plan.is_open:
                    meeting.cancel()
                self._note_ready(self._rank)
                await self._everyone_ready.wait()
        except TimeoutError:
            raise InputError(f"could not start within {self._timeouts.start:g} s: {self._missing}") from None
        self._begin()

    @property
    def _missing(self) -> str:
        """What keeps it from starting."""
        if self._plan.joins:
            return "nobody is there whom it could join"
        missing = self._rendezvous.missing(self._peers)
        return "; ".join(missing or [f"node {rank} is not ready" for rank in self._roster.unready])

    def _begin(self) -> None:
        """Begin now, unless the run has begun."""
        if self._began is not None:
            return
        if self._plan.joins:
            # It has come before who sent it was found, so that this is known.
            self._start_at(self._rendezvous.began)
            return
        self._start_at(time.monotonic())
        if self._plan.is_open:
            self._rendezvous.attend(self)

    def _start_at(self, began: float | None) -> None:
        """Take part in the run that began then, by `time.monotonic`; not yet, where that is not known."""
        if self._began is not None or began is None or self._end.done():
            return
        self._began = began
        self._tell_begun()
        if self._plan.duration is not None:
            left = self._plan.duration - self.now
            asyncio.get_running_loop().call_later(max(0.0, left), self._finish, "completed", "duration")
        self.spawn(self._observe_regularly())
        if self._plan.is_open:
            self.spawn(self._flush_regularly())
        if self._plan.joins:
            self._record(self._rank, "up")
        self._participation.tell(Started(joining=self._plan.joins))
        for event in self._early:
            self._notice(event)

    async def _observe_regularly(self) -> None:
        every = self._plan.evaluate_every
        count = math.ceil(self.now / every) if self._plan.joins else 0
        await asyncio.sleep(count * every - self.now)
        while not self._end.done():
            self._observer.observe(self._links, count * every)
            self._settle()
            count += 1
            await asyncio.sleep(count * every - self.now)

    async def _flush_regularly(self) -> None:
        while not self._end.done():
            outage = self._plan.next_outage(self.now)
            left = outage.begin - _LAST_WORDS_SECONDS - self.now if outage else math.inf
            await asyncio.sleep(left if 0 < left < _FLUSH_SECONDS else _FLUSH_SECONDS)
            self._observer.write_down(self._links, self.now)

    def _notice(self, event: PeerFound | PeerLost) -> None:
        """A peer is there, or could not be reached by this node, which joins."""
        if self._began is None:
            self._early.append(event)
            return
        if isinstance(event, PeerFound):
            self._roster.found(event.peer)
            self._record(event.peer, "found", self._rank)
        self._participation.tell(event)
        if self._roster.is_done(self._rank):
            self._links.tell(Kind.DONE)

    def _record(self, participant: int, what: MembershipEvent, peer: int | None = None) -> None:
        """Write down what has become of somebody; which incarnation it is of, is known when all is put together."""
        self._recorder.append(MembershipRow(self.now, participant, 0, what, peer))

    def _say_done(self) -> None:
        if self._roster.done(self._rank):
            self._links.tell(Kind.DONE)
            self._settle()

    def _settle(self) -> None:
        if self._roster.settled and not any(self._plan.returns(rank, self.now) for rank in self._roster.away):
            self._settled.set()
            self._finish("completed", "iterations")

    async def _say_good_bye(self, ending: Ending) -> None:
        """See to it that peers know that this node's end is no loss, and are known to be at theirs."""
        if ending.stopped_by == LEFT:
            return  # Its worker has said that.
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

    def _finish(self, status: Status, stopped_by: str) -> None:
        if not self._end.done():
            now = self._plan.duration if stopped_by == "duration" and self._plan.duration is not None else self.now
            self._end.set_result(Ending(status, stopped_by, now))
