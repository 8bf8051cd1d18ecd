"""The worker: one iteration after another, as its four choices say.

Sans-I/O: `handle(event, now)` takes what happened and returns what is to be done; a driver with a clock, real or
virtual, stands around it. An iteration is (DLion, HPDC'21, and its ancestor TF.AKO):

1. compute a gradient on a batch of the size that *batching* says;
2. send what *exchange* makes of it;
3. wait until *synchronization* lets it go on;
4. merge the weights that *knowledge transfer* has fetched, apply the own gradient and those received in one step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from dlion_sim.protocol.choices import Batching, Choice, Due, Exchange, KnowledgeTransfer, Peer, Setup, Synchronization
from dlion_sim.protocol.events import (
    Abort,
    Action,
    Compute,
    Event,
    GradientReady,
    Leave,
    LinkCapacity,
    MessageArrived,
    MessageSent,
    MessageTimed,
    PeerFound,
    PeerLost,
    Profile,
    ProfileReady,
    Report,
    Send,
    Started,
    Stop,
    Unfinished,
)
from dlion_sim.protocol.faults import MalformedMessageError
from dlion_sim.protocol.messages import Body, Channel, Contribution, Message
from dlion_sim.protocol.phases import Move, Phase, after
from dlion_sim.protocol.updates import Incoming, LocalGradient, Update

QUEUE, LOST = "queue", "lost"
"""What a wait was for, where that was no message."""
_UPDATE = Contribution.kind


@dataclass(frozen=True)
class Choices:
    """A worker's four choices."""

    batching: Batching
    exchange: Exchange
    synchronization: Synchronization
    knowledge_transfer: KnowledgeTransfer

    @property
    def all(self) -> tuple[Choice, ...]:
        return self.batching, self.exchange, self.synchronization, self.knowledge_transfer

    def receivers(self) -> dict[type[Body], Choice]:
        """Which of them each kind of message is for."""
        return {kind: choice for choice in self.all for kind in choice.receives}


class Worker:
    """One worker's whole state. `iteration` counts the iterations done; `replica` holds the parameters."""

    def __init__(self, setup: Setup, choices: Choices) -> None:
        self.setup = setup
        self.choices = choices
        self.replica = setup.replica
        self.phase = Phase.READY
        self.iteration = 0
        self._batch_size = 0
        self._own: tuple[GradientReady, Update | None] | None = None
        self._skipped = 0
        """Iterations to leave out after the last one."""
        self._now = 0.0
        self._since = 0.0
        """When the present phase began."""
        self._peers = {peer: Peer(peer, newest=choices.exchange.covers(-1)) for peer in setup.peers}
        self._awaited: list[Peer] = []
        """Those that synchronization waited for when it was last asked of all, less some that have been heard of."""
        self._inbox: list[Update] = []
        self._receivers = choices.receivers()

    def handle(self, event: Event, now: float) -> list[Action]:
        """Take in an event at time `now` (seconds) and return what to do, in order.

        Raises MalformedMessageError, with nothing changed, for a message that no honest peer sends, and
        LocalProtocolError for an event that cannot happen now.
        """
        self._now = now
        match event:
            case Started() | ProfileReady() | GradientReady():
                return self._go_on(event)
            case MessageArrived():
                return [*self._receive(event.message), *self._step_if_allowed(event)]
            case MessageSent():
                if event.peer in self._peers:
                    self.setup.links.sent(event.peer, now)
                return self._step_if_allowed(event)
            case MessageTimed():
                if event.peer in self._peers:
                    self.setup.links.timed(event.peer, event.size, event.seconds)
                return []
            case PeerLost():
                return [*self._lose(event.peer), *self._step_if_allowed(event)]
            case PeerFound() | Leave():
                return []
            case LinkCapacity():
                self.setup.links.told(event.peer, event.alone, event.shared)
                return []
            case _:
                assert_never(event)

    def _go_on(self, event: Started | ProfileReady | GradientReady) -> list[Action]:
        """Take up what the worker was waiting for from its own machine."""
        was, self.phase = self.phase, after(self.phase, type(event))
        match event:
            case _ if was is Phase.STOPPED:
                return []
            case Started():
                return self._start()
            case ProfileReady():
                return [*self._queue(self.choices.batching.measured(event.measurements)), *self._compute()]
            case GradientReady():
                self._since = self._now
                return [*self._exchange(event), *self._step_if_allowed(event)]
            case _:
                assert_never(event)

    def unfinished(self, now: float) -> Unfinished | None:
        """What it is at, at time `now` (seconds); None before it is started and once it has stopped."""
        lasted = max(0.0, now - self._since)
        match self.phase:
            case Phase.PROFILING:
                return Unfinished("profile", 0, lasted)
            case Phase.COMPUTING:
                return Unfinished("unfinished", self.iteration + 1, lasted)
            case Phase.WAITING | Phase.CATCHING_UP:
                computed = self._own[0].seconds if self._own else 0.0
                return Unfinished("unfinished", self.iteration + 1, computed, lasted, *self._furthest_behind())
            case Phase.READY | Phase.JOINING | Phase.STOPPED | Phase.LEAVING:
                return None
            case _:
                assert_never(self.phase)

    def _move(self, move: Move) -> None:
        self.phase, self._since = after(self.phase, move), self._now

    def _start(self) -> list[Action]:
        batch_sizes = self.choices.batching.profile()
        if not batch_sizes:
            return self._compute()
        self._move(Move.PROFILE)
        return [Profile(batch_sizes)]

    def _compute(self) -> list[Action]:
        if self.setup.iterations is not None and self.iteration >= self.setup.iterations:
            self._move(Move.FINISH)
            return [Stop()]
        self._move(Move.COMPUTE)
        self._batch_size = self.choices.batching.batch_size(self.iteration)
        entered = self.choices.synchronization.entered(self.iteration)
        began = [Send(*each) for each in self.choices.exchange.began(self.iteration, self._batch_size)]
        return [*self._queue([*entered, *began]), Compute(self._batch_size)]

    def _exchange(self, ready: GradientReady) -> list[Action]:
        factor = self._factor(Contribution(self.iteration, self._batch_size))
        self.setup.links.computed(ready.seconds)
        outgoing = self.choices.exchange.outgoing(
            LocalGradient(self.iteration, self._batch_size, ready.gradient, ready.seconds, factor, self._now)
        )
        self._own = ready, outgoing.own
        measured = self.choices.batching.measured([(self._batch_size, ready.seconds)])
        return self._queue([*measured, *(Send(peer, message) for peer, message in outgoing.messages)])

    def _receive(self, message: Message) -> list[Action]:
        if message.sender not in self._peers:
            raise MalformedMessageError(f"{message.sender} is no peer of {self.setup.worker}")
        receiver = self._receivers.get(type(message.body))
        if receiver is None:
            raise MalformedMessageError(f"none of its choices takes a message of the kind {message.body.wire_kind!r}")
        if not isinstance(message.body, Contribution):
            return self._queue(receiver.received(message))
        update = Update.of(message)
        self.choices.exchange.arrived(update)
        peer = self._peers[message.sender]
        peer.newest = max(peer.newest, self.choices.exchange.covers(update.body.iteration))
        self._inbox.append(update)
        return []

    def _lose(self, peer: int) -> list[Action]:
        """Go on without a peer, as if it had never been there; or not at all."""
        if peer not in self._peers:
            return []
        del self._peers[peer]
        self._awaited = []
        self.setup.links.lost(peer)
        self._inbox = [update for update in self._inbox if update.sender != peer]
        reasons = [reason for choice in self.choices.all if (reason := choice.lost(peer))]
        if not reasons or self.phase is Phase.STOPPED:
            return []
        self._move(Move.GIVE_UP)
        return [Abort(reasons[0])]

    def _step_if_allowed(self, event: Event) -> list[Action]:
        """End the iteration if it may end, now that `event` has happened."""
        if self.phase is Phase.CATCHING_UP and not self._is_held_up(last := self.iteration + self._skipped - 1):
            self.choices.exchange.apply(Incoming(last, None, self._due(last), self._factor))
            self.iteration = last + 1
            return self._compute()
        if self.phase is not Phase.WAITING or self._own is None or self._is_held_up(self.iteration):
            return []
        ready, own = self._own
        merges = self.choices.knowledge_transfer.merges()
        for merge in merges:
            self.replica.merge(merge.weights, merge.share)
        received = self._due(self.iteration)
        applied = self.choices.exchange.apply(Incoming(self.iteration, own, received, self._factor))
        lags = [self.iteration - update.body.iteration for update in received]
        self._skipped = self.choices.synchronization.skipped(self.iteration)
        self.iteration += 1
        self._own = None
        waited = self._now - self._since
        waited_for, wait_reason = _cause(event) if waited > 0 else (None, None)
        report = Report(
            iteration=self.iteration,
            loss=ready.loss,
            batch_size=self._batch_size,
            global_batch_size=self.choices.batching.global_batch_size(self.iteration - 1),
            staleness=sum(lags) / len(lags) if lags else None,
            applied=applied,
            merged=len(merges),
            compute_seconds=ready.seconds,
            wait_seconds=waited,
            waited_for=waited_for,
            wait_reason=wait_reason,
        )
        transfer = self._queue(self.choices.knowledge_transfer.stepped(self.iteration, ready.loss))
        if self._skipped and self.choices.exchange.catches_up:
            self._move(Move.CATCH_UP)
            return [report, *transfer, *self._step_if_allowed(event)]
        self.iteration += self._skipped
        return [report, *transfer, *self._compute()]

    def _is_held_up(self, iteration: int) -> bool:
        """Whether `iteration` may not end yet."""
        synchronization = self.choices.synchronization
        if not (synchronization.ready(iteration) and self.choices.exchange.ready(iteration)):
            return True

        def waits(peer: Peer) -> bool:
            return synchronization.waits_for(peer, iteration)

        # To know of one more than may be spared suffices: it is not asked of all n peers whenever one is heard of.
        needed = synchronization.spared + 1
        while len(self._awaited) >= needed and not all(map(waits, self._awaited[-needed:])):
            self._awaited[-needed:] = filter(waits, self._awaited[-needed:])
        if len(self._awaited) < needed:
            self._awaited = list(filter(waits, self._peers.values()))
        return len(self._awaited) >= needed

    def _furthest_behind(self) -> tuple[int | None, str | None]:
        """Of the peers that synchronization waits for, the one furthest behind, and for what."""
        synchronization = self.choices.synchronization
        last = self.iteration + (self._skipped - 1 if self.phase is Phase.CATCHING_UP else 0)
        awaited = [number for number, peer in self._peers.items() if synchronization.waits_for(peer, last)]
        if len(awaited) <= synchronization.spared:
            return None, None  # It is something else that the wait is for.
        if synchronization.waits_for_peers:
            return min(awaited, key=lambda number: self._peers[number].newest), _UPDATE
        return max(awaited, key=self.setup.links.messages), QUEUE

    def _due(self, iteration: int) -> list[Update]:
        """Take the received contributions that belong to `iteration` out of the inbox."""
        sorted_out: dict[Due, list[Update]] = {"now": [], "later": [], "never": []}
        for update in self._inbox:
            sorted_out[self.choices.synchronization.due(update.body.iteration, iteration)].append(update)
        self._inbox = sorted_out["later"]
        return sorted_out["now"]

    def _factor(self, contribution: Contribution) -> float:
        """By which a contribution enters the mean over this worker and its peers, whoever of them was heard."""
        return self.choices.batching.weight(contribution, self._batch_size) / (len(self._peers) + 1)

    def _queue(self, actions: list[Action]) -> list[Action]:
        """The same actions, the data among them noted, since choices watch the links."""
        for action in actions:
            if isinstance(action, Send) and action.message.body.channel is Channel.DATA:
                self.setup.links.queued(action.peer, action.message.size, self._now)
        return actions


def _cause(event: Event) -> tuple[int | None, str | None]:
    """Which peer has ended a wait, and by what."""
    match event:
        case MessageArrived(message):
            return message.sender, message.body.kind
        case MessageSent(peer=peer):
            return peer, QUEUE
        case PeerLost(peer=peer):
            return peer, LOST
        case _:
            return None, None
