"""Workers and servers joined by a list, with failures of machines and links."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any

import torch

from dlion_sim.learning.replica import Replica
from dlion_sim.protocol.compose import compose
from dlion_sim.protocol.events import (
    Abort,
    Compute,
    Event,
    GradientReady,
    Joined,
    Leave,
    LeaveCompleted,
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
)
from dlion_sim.protocol.exchange.partitions import by_bytes
from dlion_sim.protocol.messages import Body, Channel, Contribution, Message, decode
from dlion_sim.protocol.phases import Phase
from dlion_sim.protocol.server import ParameterServer
from dlion_sim.protocol.topology import mixing_weights
from dlion_sim.protocol.worker import Worker
from dlion_sim.scenario import SystemSpec
from tests.protocol.joined import Gradients, layout, setup

P = 6
RATE = 0.1

SYSTEMS: list[dict[str, Any]] = [
    {"name": "baseline"},
    {"name": "baseline", "exchange": {"kind": "top_k", "density": 0.3}},
    {"name": "baseline", "exchange": {"kind": "adaptive_top_k", "density": 0.2, "most": 0.5}},
    {"name": "baseline", "exchange": "dgc", "synchronization": "asynchronous"},
    {"name": "baseline", "knowledge_transfer": {"kind": "weight_exchange", "period": 2}},
    {"name": "ako"},
    {"name": "gaia"},
    {"name": "gaia", "exchange": {"barrier": "selective"}},
    {"name": "hop"},
    {"name": "hop", "synchronization": {"max_gap": 1, "backup_workers": 0, "staleness": 3}},
    {"name": "hop", "synchronization": {"max_gap": 2, "skip_from": 1}},
    {
        "name": "hop",
        "exchange": {"kind": "parameters", "staleness": 5},
        "synchronization": {"max_gap": 6, "skip_from": 1},
    },
    {"name": "dpsgd"},
    {"name": "adpsgd"},
    {"name": "parameter_server"},
    {"name": "parameter_server", "topology": {"kind": "parameter_server", "hosts": [0, 1]}},
    {"name": "parameter_server", "exchange": {"asynchronous": True}},
    {"name": "async_local_sgd", "exchange": {"period": 3}},
    {"name": "async_local_sgd", "exchange": {"period": 3}, "topology": {"kind": "parameter_server", "hosts": [0, 1]}},
    {"name": "fedavg", "exchange": {"participation": 0.5, "epochs": 0.05}},
    {"name": "local_sgd", "exchange": {"period": 3}},
    {"name": "diloco", "exchange": {"period": 3}},
    {"name": "sparta", "exchange": {"part": 0.5}},
    {"name": "gossipgrad"},
    {"name": "demo", "exchange": {"entries": 2}},
    {"name": "sgp"},
    {"name": "sgp", "synchronization": {"kind": "bounded_staleness", "staleness": 2}},
    {"name": "streaming_diloco", "exchange": {"period": 4, "delay": 1}},
    {"name": "streaming_diloco", "exchange": {"period": 4, "eager": True}},
    {"name": "streaming_diloco", "exchange": {"period": 6, "delay": 2, "precision": "fp32"}},
    {"name": "sparse_loco", "exchange": {"period": 3, "density": 0.4}},
    {"name": "noloco", "exchange": {"period": 3}},
    {"name": "moshpit", "exchange": {"period": 3}},
    {"name": "decoupled_diloco", "exchange": {"period": 4, "delay": 1}},
    {"name": "halos", "exchange": {"period": 2, "region_updates": 2}},
    {"name": "dlion", "knowledge_transfer": {"period": 3}},
    {"name": "dlion_sparse", "exchange": {"density": 0.3}},
    {"name": "dlion", "exchange": {"residual": "accumulate"}, "synchronization": "synchronous"},
]
"""Systems that can continue without a worker, in some way."""


def noise(worker: Worker, batch_size: int) -> tuple[float, torch.Tensor]:
    """A gradient [P] that differs by worker, incarnation and iteration."""
    setup = worker.setup
    generator = torch.Generator().manual_seed(10_000 * setup.worker + 1000 * setup.incarnation + worker.iteration)
    return 1.0, torch.randn(P, generator=generator)


@dataclass
class Log:
    """The record of one incarnation of a worker."""

    worker: Worker
    incarnation: int
    reports: list[Report] = field(default_factory=list)
    joined: Joined | None = None
    has_left: bool = False
    applied: list[tuple[int, frozenset[tuple[int, int, int]]]] = field(default_factory=list)
    """Of each iteration the contributions of peers that were applied: sender, its incarnation, their iteration."""
    ends: dict[int, torch.Tensor] = field(default_factory=dict)
    """Parameters after so many iterations."""


class World:
    """`system` on `workers` machines, with messages and computations under way for random times.

    `happen(time, call)` plans what becomes of machines and links: `crash`, `leave`, `come` back, `part` and `mend` what
    connects two. As with real machines, what has not left when one fails is lost, what has left arrives, and peers
    notice later than that. `parameters` [P] are those that every worker begins with.
    """

    def __init__(
        self,
        system: dict[str, Any],
        workers: int,
        gradients: Gradients,
        *,
        seed: int = 0,
        absent: Sequence[int] = (),
        iterations: int | None = 12,
        optimizer: dict[str, Any] | None = None,
        delay: Callable[[Random], float] = lambda random: random.expovariate(1.0),
        patient: bool = False,
        **keys: Any,
    ) -> None:
        self._composed = compose(SystemSpec.model_validate(system))
        self._mixing = mixing_weights(self._composed.topology, workers, seed=0)
        self._gradients = gradients
        self._random, self._delay = Random(seed), delay
        self._patient = patient
        """Whether two that find each other wait until all is there that one of them had sent before it went."""
        self._iterations, self._keys = iterations, keys
        self._optimizer = optimizer or {}
        self.workers = workers
        self.time = 0.0
        self.aborts: list[str] = []
        self.logs: list[Log] = []
        """Of all incarnations, the latest last."""
        self.lost_messages = 0
        self._planned: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self._incarnations: defaultdict[int, int] = defaultdict(int)
        self._participants: dict[int, Worker | ParameterServer] = {}
        self._open: dict[frozenset[int], int] = {}
        """The connections that there are, by their two ends."""
        self._hears: dict[tuple[int, int], int] = {}
        """The connection over which one takes the other for there."""
        self._broken: set[frozenset[int]] = set()
        self._last: defaultdict[Any, float] = defaultdict(float)
        """When the last thing of a channel is to happen."""
        self._watched: dict[type[Body], Callable[[int, int], None]] = {}
        self._origins: dict[int, tuple[int, Message]] = {}
        hosts = getattr(self._composed.topology, "hosts", ())
        self.servers = len(hosts)
        everyone = [each for each in range(workers) if each not in absent]
        for number, (begin, end) in enumerate(by_bytes(P, len(hosts)) if hosts else []):
            replica = Replica(layout(end - begin), torch.zeros(end - begin), learning_rate=RATE, **self._optimizer)
            self._participants[workers + number] = ParameterServer(
                workers + number,
                workers,
                replica,
                begin,
                self._composed.choices["exchange"].parameters,
                absent=frozenset(absent),
                on_loss=self._keys.get("on_loss", "abort"),
            )
        for number in everyone:
            self._participants[number] = self._worker(number, frozenset(absent) & set(self._mixing[number]))
        for one in self._participants:
            for other in self._neighbours(one):
                if one < other and other in self._participants:
                    self._join(one, other)
        for number in (*everyone, *range(workers, workers + self.servers)):
            self._tell(number, Started())

    def at(self, number: int) -> Worker | None:
        """The worker of that number, if it is there."""
        found = self._participants.get(number)
        return found if isinstance(found, Worker) else None

    @property
    def present(self) -> list[Worker]:
        """The workers that there are."""
        return [each for each in self._participants.values() if isinstance(each, Worker)]

    def log(self, number: int) -> Log:
        """Of the latest incarnation of a worker."""
        return next(log for log in reversed(self.logs) if log.worker.setup.worker == number)

    def happen(self, time: float, call: Callable[..., Any], *args: Any) -> None:
        """Let something happen at a time."""
        heappush(self._planned, (time, next(self._numbers), lambda: call(*args)))

    def watch(self, kind: type[Body], call: Callable[[int, int], None]) -> None:
        """Once, when a message of that kind is sent, let something happen to its sender and receiver."""
        self._watched[kind] = call

    def run(self, most: int = 50_000) -> None:
        """Go on until nothing happens any more, or somebody gives up."""
        for _ in range(most):
            if not self._planned or self.aborts:
                return
            due, _, call = heappop(self._planned)
            self.time = max(self.time, due)
            call()
        raise AssertionError("it never ends")

    def crash(self, number: int) -> None:
        """A machine fails: what had not left is lost, and peers notice after a while."""
        if number not in self._participants:
            return
        del self._participants[number]
        self._incarnations[number] += 1
        for peer in self._neighbours(number):
            self._close(number, peer)
            self._hears.pop((number, peer), None)
            self._notice(peer, number, self.time)

    def leave(self, number: int, notice: float | None = None) -> None:
        """A machine is to go, after so long a notice, or when it is ready."""
        if self.at(number):
            incarnation = self._incarnations[number]
            if notice is not None:
                self.happen(self.time + notice, self._crash_this, number, incarnation)
            self._tell(number, Leave(None if notice is None else self.time + notice))

    def come(self, number: int) -> None:
        """A machine is there, with nothing but its initial parameters."""
        if number in self._participants:
            return
        peers = self._neighbours(number)
        reached = [each for each in peers if each in self._participants and {number, each} not in self._broken]
        self._participants[number] = self._worker(number, frozenset(peers) - frozenset(reached))
        self._tell(number, Started(joining=True))
        for peer in reached:
            self._connect(number, peer)

    def part(self, one: int, other: int) -> None:
        """What connects two breaks, so long that they take each other for lost."""
        self._broken.add(frozenset((one, other)))
        self._close(one, other)
        for each, peer in ((one, other), (other, one)):
            self._notice(each, peer, self.time)

    def mend(self, one: int, other: int) -> None:
        """It is back."""
        self._broken.discard(frozenset((one, other)))
        if one in self._participants and other in self._participants and other in self._neighbours(one):
            self._connect(one, other)

    def _neighbours(self, number: int) -> list[int]:
        return list(range(self.workers)) if number >= self.workers else list(self._mixing[number])

    def _worker(self, number: int, absent: frozenset[int]) -> Worker:
        incarnation = self._incarnations[number]
        made = setup(
            number, self.workers, mixing=dict(self._mixing[number]), side=number % 2, iterations=self._iterations
        )
        own = replace(
            made,
            replica=Replica(made.replica.layout, torch.zeros(P), learning_rate=RATE, **self._optimizer),
            absent=absent,
            incarnation=incarnation,
            **self._keys,
        )
        worker = self._composed.worker(own)
        log = Log(worker, incarnation)
        self.logs.append(log)
        apply = worker.choices.exchange.apply

        def noting(incoming):
            applied = frozenset(
                (update.sender, self._origins[id(update.tensors)][0], update.body.iteration)
                for update in incoming.received
            )
            assert len(applied) == len(incoming.received), "nothing is applied twice"
            log.applied.append((incoming.iteration, applied))
            return apply(incoming)

        worker.choices.exchange.apply = noting
        return worker

    def _pause(self) -> float:
        return self._delay(self._random)

    def _crash_this(self, number: int, incarnation: int) -> None:
        if self._incarnations[number] == incarnation:
            self.crash(number)

    def _connect(self, one: int, other: int) -> None:
        """Two begin to shake hands."""
        incarnations = self._incarnations[one], self._incarnations[other]
        self.happen(self.time + self._pause(), self._meet, one, other, incarnations)

    def _meet(self, one: int, other: int, incarnations: tuple[int, int]) -> None:
        pair = frozenset((one, other))
        if pair in self._open:
            return
        is_same = (self._incarnations[one], self._incarnations[other]) == incarnations
        ends = [(one, other, incarnations[0]), (other, one, incarnations[1])]
        if not is_same or pair in self._broken:
            for each, peer, incarnation in ends:
                if self._incarnations[each] == incarnation and (each, peer) not in self._hears:
                    self._tell(each, PeerLost(peer))
            return
        if self._patient and not self._hears.keys().isdisjoint({(one, other), (other, one)}):
            self._connect(one, other)
            return
        for each, peer, _ in ends:
            if self._hears.pop((each, peer), None) is not None:
                self._tell(each, PeerLost(peer))
                return self._meet(one, other, incarnations)  # Who was about to leave may have gone with that.
        self._join(one, other)
        for each, peer, _ in ends:
            self._tell(each, PeerFound(peer))

    def _join(self, one: int, other: int) -> None:
        connection = next(self._numbers)
        self._open[frozenset((one, other))] = self._hears[one, other] = self._hears[other, one] = connection

    def _close(self, one: int, other: int) -> None:
        self._open.pop(frozenset((one, other)), None)

    def _notice(self, number: int, peer: int, after: float) -> None:
        """One comes to know that it has lost the other, some time after that."""
        connection = self._hears.get((number, peer))

        def lose() -> None:
            if connection is not None and self._hears.get((number, peer)) == connection:
                del self._hears[number, peer]
                self._tell(number, PeerLost(peer))

        self.happen(after + self._pause(), lose)

    def _plan(self, due: float, channel: Any, call: Callable[..., Any], *args: Any) -> float:
        """Let something happen, but after what is planned in the same channel."""
        self._last[channel] = due = max(due, self._last[channel])
        self.happen(due, call, *args)
        return due

    def _later(self, number: int, event: Event) -> None:
        """Something happens on a worker's own machine, unless that fails before."""
        incarnation = self._incarnations[number]
        self.happen(
            self.time + self._pause(),
            lambda: self._tell(number, event) if self._incarnations[number] == incarnation else None,
        )

    def _send(self, sender: int, receiver: int, message: Message) -> None:
        connection = self._hears.get((sender, receiver))
        worker = self.at(sender)
        assert connection is not None or (worker and worker.phase is Phase.LEAVING), "nothing goes to who is lost"
        pair, channel = frozenset((sender, receiver)), message.body.channel
        if call := self._watched.pop(type(message.body), None):
            self.happen(self.time, call, sender, receiver)
        if connection is None or self._open.get(pair) != connection:
            self.lost_messages += 1
            return
        data = message.encode()
        assert len(data) == message.size
        incarnation = self._incarnations[sender]
        here = decode(data, workers=self.workers + 9, parameters=P)
        if isinstance(here.body, Contribution):
            self._origins[id(here.tensors)] = incarnation, here
        arrival = self._pause()

        def leave() -> None:
            if self._open.get(pair) != connection:
                self.lost_messages += 1
                return
            self._plan(self.time + arrival, (connection, sender, channel), arrive)
            if channel is Channel.DATA and self._hears.get((sender, receiver)) == connection:
                self._tell(sender, MessageTimed(receiver, message.size, 1.0))
                if self._hears.get((sender, receiver)) == connection:
                    self._tell(sender, MessageSent(receiver, message.size))

        def arrive() -> None:
            if self._hears.get((receiver, sender)) == connection:
                self._tell(receiver, MessageArrived(here))

        self._plan(self.time + self._pause(), (connection, sender, channel, "leaves"), leave)

    def _tell(self, number: int, event: Event) -> None:
        if self.aborts or number not in self._participants:
            return
        participant = self._participants[number]
        for action in participant.handle(event, self.time):
            match action:
                case Compute(batch_size):
                    loss, gradient = self._gradients(participant, batch_size)
                    self._later(number, GradientReady(loss, gradient, 1.0))
                case Profile(sizes):
                    self._later(number, ProfileReady(tuple((size, 0.01 + 0.001 * size) for size in sizes)))
                case Send(peer, message):
                    self._send(number, peer, message)
                case Report():
                    log = self.log(number)
                    log.reports.append(action)
                    log.ends[action.iteration] = participant.replica.parameters.clone()
                case Joined():
                    self.log(number).joined = action
                case LeaveCompleted():
                    self.log(number).has_left = True
                    self._depart(number)
                case Abort(reason):
                    self.aborts.append(reason)
                case Stop():
                    pass

    def _depart(self, number: int) -> None:
        """A machine goes, and all that it has sent arrives: peers notice after that."""
        del self._participants[number]
        self._incarnations[number] += 1
        for peer in self._neighbours(number):
            connection = self._hears.pop((number, peer), None)
            channels = [self._last[connection, number, channel] for channel in Channel]
            self._close(number, peer)
            self._notice(peer, number, max(self.time, *channels))
