"""The wall-clock driver: a participant begins and ends with the others, and learns which of them are there."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import Any, assert_never

from dlion_sim.assembly import Recorder, Setting, Transfer
from dlion_sim.errors import InputError
from dlion_sim.live.frames import Kind, News
from dlion_sim.live.member import Member
from dlion_sim.live.mesh import Mesh
from dlion_sim.live.node_config import LEFT, NodeConfig
from dlion_sim.live.observer import Observer
from dlion_sim.live.pair import Connections
from dlion_sim.live.participation import Decision, Participation
from dlion_sim.live.peer_states import PeerStates
from dlion_sim.live.rendezvous import Rendezvous
from dlion_sim.live.snapshots import Snapshots
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
from dlion_sim.results import Ending, MembershipRow, Status
from dlion_sim.results.tables import MembershipEvent

_LOG = logging.getLogger(__name__)
_GOOD_BYE_SECONDS = 5.0
"""For which a node at its end waits until the others' clocks are there, too."""
_EARLY_SECONDS, _LATE_SECONDS = 0.5, 5.0
"""By which outages and notices may come earlier, and returns later, than in the scenario."""
_FLUSH_SECONDS, _LAST_FLUSH_SECONDS = 0.5, 0.03
"""The most of its measurements that a node loses if it is killed; less if the scenario says when."""


class NobodyReachedError(InputError):
    """A node that joins has reached no node of the run, and none has refused it."""


class Driver:
    """Runs a participant on its node; one that joins may know when the run `began`, by `time.monotonic`.

    All begin once each of them has all its connections, which each passes on. A worker that is done says so and answers
    its peers until they are done.
    """

    def __init__(
        self,
        setting: Setting,
        config: NodeConfig,
        member: Member,
        recorder: Recorder,
        tasks: asyncio.TaskGroup,
        *,
        began: float | None = None,
    ) -> None:
        self._rank = rank = config.rank
        self._setting = setting
        self._config = config
        self._recorder = recorder
        self._tasks = tasks
        self._joined_run_began = began
        self._duration = setting.scenario.duration
        self._is_open = setting.scenario.availability is not None
        """Whether lost peers may return, and absent ones come."""
        self._participation = Participation(rank, member, recorder, self)
        self._spawned: set[asyncio.Task[None]] = set()
        self._end: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        self._everyone_ready = asyncio.Event()
        self._began: float | None = None
        peers, absent = setting.neighbours(rank), setting.outages.absent_at_start
        self._peers = [peer for peer in peers if peer not in absent]
        """Those that it waits for at the start."""
        workers = [peer for peer in peers if peer < setting.workers]
        serves = isinstance(member.participant, ParameterServer)
        out_of_sight = {*range(setting.participants)}.difference(peers) if self._is_open else ()
        self._states = PeerStates(
            rank, setting.participants, workers, absent=absent, out_of_sight=out_of_sight, serves=serves
        )
        self._settled = asyncio.Event()
        self._observer = Observer(
            rank,
            member.participant,
            recorder,
            setting.same_machine(rank),
            config.output,
            evaluated=setting.is_evaluated(rank),
        )
        self._observer.member_since = math.inf if config.joins else 0.0
        self._early: list[PeerFound | PeerLost] = []
        """Events before the begin of the run was known."""
        self._state_bytes = 0
        """Bytes of state transfers that have arrived."""

    @property
    def now(self) -> float:
        """Seconds since the start."""
        return 0.0 if self._began is None else time.monotonic() - self._began

    @property
    def clock(self) -> float | None:
        """Seconds since the start; None before."""
        return None if self._began is None else self.now

    @property
    def snapshots(self) -> Snapshots:
        """Of the parameters that are evaluated."""
        return self._observer.snapshots

    @property
    def gone(self) -> Mapping[int, str]:
        """Why participants were lost, in the order in which this node learned of it."""
        return self._states.gone

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
        """Leave the run gracefully, if there is time before the machine is preempted; the others continue."""
        if self._began is None:
            self.interrupt()
            return
        outage = self._setting.outages.next_after(self._rank, self.now)
        if outage and outage.kind == "preemption" and outage.begin - outage.notice <= self.now + _EARLY_SECONDS:
            self._participation.tell(Leave(outage.begin))
        else:
            self._participation.tell(Leave(None))

    def arrived(self, message: Message) -> None:
        """A message; its sender has begun, so that all are ready.

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
        """News from a peer. Those of interest to all are passed on, once."""
        match kind:
            case Kind.READY:
                self._note_ready(rank)
            case Kind.DONE:
                self._states.done(rank)
                self._settle()
            case Kind.GONE:
                if not self._end.done() and self._states.missed(rank):
                    self._pass_on(rank)
            case _:
                assert_never(kind)

    def lost(self, peer: int, reason: str) -> None:
        """A peer's connections have ended. That is no loss if it was done."""
        if self._is_open:
            self._rendezvous.parted(peer)
        if self._end.done():
            return
        if self._states.is_done(peer):
            self._states.left(peer)
            if self._is_open:
                self._participation.tell(PeerLost(peer))
            return
        if self._began is None:
            if self._config.joins:
                return
            raise InputError(f"node {peer} was lost before the start: it {reason}")
        if self._states.lost(peer, f"it {reason}"):
            self._pass_on(peer)
        self._record(peer, "lost", self._rank)
        self._participation.tell(PeerLost(peer))
        self._settle()

    def met(self, peer: int, connections: Connections) -> None:
        """A peer is connected that was lost, or absent at the start."""
        self._links.connect(peer, connections)
        if self._began is None:
            self._start_at(self._rendezvous.began)
        self._notice(PeerFound(peer))

    def missed(self, peer: int) -> None:
        """A peer could not be reached, which a joining worker has to know."""
        if self._config.joins:
            self._notice(PeerLost(peer))

    def superseded(self, peer: int) -> None:
        """A peer connects anew, and is lost until then."""
        self._links.superseded(peer)

    def is_over(self, at: float) -> bool:
        """Whether the run is over at that time; the event loop may notice it later."""
        return self._end.done() or (self._duration is not None and at > self._duration)

    def send(self, peer: int, message: Message) -> None:
        """Queue a message of the participant."""
        self._links.send(peer, message)

    def decided(self, decision: Decision, at: float) -> None:
        """The participant has made a decision on its part in the run, at that time."""
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
                lost = ", ".join(f"node {rank} ({reason})" for rank, reason in self._states.missing.items())
                self._finish("failed", f"{decision.reason}; lost: {lost}" if lost else decision.reason)
            case _:
                assert_never(decision)

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a task, until the run has ended here."""
        task = self._tasks.create_task(work)
        self._spawned.add(task)
        task.add_done_callback(self._spawned.discard)
        return task

    async def _start(self) -> None:
        """Connect, wait for all others, and begin; or join a run under way."""
        meeting = self.spawn(self._rendezvous.run())
        try:
            async with asyncio.timeout(self._config.timeouts.start):
                if self._config.joins:
                    self._start_at(self._joined_run_began)
                    self._rendezvous.attend(self)
                    await self._rendezvous.all_tried()
                    if self._began is None:
                        self._start_at(await self._rendezvous.beginning())
                    return
                for peer, connections in (await self._rendezvous.meet(self._peers)).items():
                    self._links.connect(peer, connections)
                if not self._is_open:
                    meeting.cancel()
                self._note_ready(self._rank)
                await self._everyone_ready.wait()
        except TimeoutError:
            tried = self._config.joins and not self._rendezvous.untried
            kind = NobodyReachedError if tried and not self._rendezvous.is_refused else InputError
            raise kind(f"could not start within {self._config.timeouts.start:g} s: {self._missing}") from None
        self._begin()

    @property
    def _missing(self) -> str:
        """Why it cannot start."""
        if self._config.joins and not (untried := self._rendezvous.untried):
            reasons = self._rendezvous.missing(self._setting.neighbours(self._rank))
            return "; ".join(["no node of the run was reached", *reasons])
        missing = self._rendezvous.missing(untried if self._config.joins else self._peers)
        return "; ".join(missing or [f"node {rank} is not ready" for rank in self._states.unready])

    def _begin(self) -> None:
        """Begin now, unless the run has begun."""
        if self._began is not None:
            return
        if self._config.joins:
            # The sender of an early message was found, so that this is known.
            self._start_at(self._rendezvous.began)
            return
        self._start_at(time.monotonic())
        if self._is_open:
            self._rendezvous.attend(self)

    def _start_at(self, began: float | None) -> None:
        """Take part in the run that began then, by `time.monotonic`; not yet if that is not known."""
        if self._began is not None or began is None or self._end.done():
            return
        self._began = began
        now = self.now
        self._config.begun()  # It may write to the disk, which delays nothing that begins now.
        if self._duration is not None:
            left = self._duration - self.now
            asyncio.get_running_loop().call_later(max(0.0, left), self._finish, "completed", "duration")
        self.spawn(self._observe_regularly())
        if self._is_open:
            self.spawn(self._flush_regularly())
        if self._config.joins:
            self._record(self._rank, "up")
        self._participation.tell(Started(joining=self._config.joins), now)
        for event in self._early:
            self._notice(event)

    async def _observe_regularly(self) -> None:
        every = self._setting.scenario.workload.evaluate_every
        count = math.ceil(self.now / every) if self._config.joins else 0
        await asyncio.sleep(count * every - self.now)
        while not self._end.done():
            self._observer.observe(self._links, count * every)
            self._settle()
            count += 1
            await asyncio.sleep(count * every - self.now)

    async def _flush_regularly(self) -> None:
        while not self._end.done():
            killed_at = self._setting.outages.next_kill(self._rank, self.now)
            left = killed_at - _LAST_FLUSH_SECONDS - self.now
            is_last = 0 < left < _FLUSH_SECONDS
            await asyncio.sleep(left if is_last else _FLUSH_SECONDS)
            if is_last:
                self._observer.cut(self._participation.batch_size, self.now)
            self._observer.write_down(self._links, self.now)

    def _notice(self, event: PeerFound | PeerLost) -> None:
        """A peer is there, or could not be reached by this joining node."""
        if self._began is None:
            self._early.append(event)
            return
        if isinstance(event, PeerFound):
            self._states.found(event.peer)
            self._record(event.peer, "found", self._rank)
        else:
            self._states.left(event.peer)
        self._participation.tell(event)
        if self._states.is_done(self._rank):
            self._links.tell(Kind.DONE)
        self._settle()

    def _record(self, participant: int, what: MembershipEvent, peer: int | None = None) -> None:
        """Record a change of membership; incarnations are completed when parts are gathered."""
        self._recorder.append(MembershipRow(self.now, participant, 0, what, peer))

    def _say_done(self) -> None:
        if self._states.done(self._rank):
            self._links.tell(Kind.DONE)
            self._settle()

    def _settle(self) -> None:
        if self._states.settled and not any(self._returns(rank) for rank in self._states.away):
            self._settled.set()
            self._finish("completed", "iterations")

    async def _say_good_bye(self, ending: Ending) -> None:
        """Tell peers that this node's end is no loss, and wait for theirs."""
        if ending.stopped_by == LEFT:
            return  # Its worker has told them.
        self._say_done()
        with suppress(TimeoutError):
            async with asyncio.timeout(_GOOD_BYE_SECONDS):
                await self._settled.wait()

    def _returns(self, rank: int) -> bool:
        """Whether a participant that is not there is to return, by the scenario."""
        availability = self._setting.scenario.availability
        if availability is None:
            return False
        for outage in self._setting.outages.participant(rank):
            if outage.begin > self.now + _EARLY_SECONDS:
                return False
            if self.now < outage.end + availability.restart + _LATE_SECONDS:
                return math.isfinite(outage.end)
        return False

    def _note_ready(self, rank: int) -> None:
        if self._states.ready(rank):
            self._links.tell(Kind.READY, rank)
            if not self._states.unready:
                self._everyone_ready.set()

    def _pass_on(self, lost: int) -> None:
        """Tell the others of a loss."""
        _LOG.warning("node %d has lost node %d: %s", self._rank, lost, self.gone[lost])
        self._links.tell(Kind.GONE, lost)

    def _finish(self, status: Status, stopped_by: str) -> None:
        if not self._end.done():
            now = self._duration if stopped_by == "duration" and self._duration is not None else self.now
            self._end.set_result(Ending(status, stopped_by, now))
