"""Workers joined by a list: a driver without clock, network or threads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import assert_never

import torch

from dlion_sim.learning.flat import Layout
from dlion_sim.learning.replica import Replica, constant
from dlion_sim.protocol.choices import Setup
from dlion_sim.protocol.compose import compose
from dlion_sim.protocol.events import (
    Abort,
    Compute,
    Event,
    GradientReady,
    Joined,
    LeaveCompleted,
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
from dlion_sim.protocol.exchange.partitions import by_bytes
from dlion_sim.protocol.link_monitor import LinkMonitor
from dlion_sim.protocol.messages import Channel, Message, decode
from dlion_sim.protocol.server import ParameterServer
from dlion_sim.protocol.topology import mixing_weights
from dlion_sim.protocol.worker import Worker
from dlion_sim.scenario import SystemSpec

Gradients = Callable[[Worker, int], tuple[float, torch.Tensor]]
"""Loss and gradient [P] of a worker's next batch of that size."""
Delays = Callable[[int], float]
"""The duration of a participant's next computation or message (s)."""


def layout(*shapes: int | tuple[int, ...]) -> Layout:
    """Variables of these shapes; a number is a length."""
    return Layout(
        tuple(f"v{i}" for i in range(len(shapes))),
        tuple((shape,) if isinstance(shape, int) else shape for shape in shapes),
    )


def setup(
    worker=0,
    workers=3,
    *,
    variables=(4, 2),
    batch_size=32,
    samples=6000,
    iterations=None,
    learning_rate=0.1,
    decay=constant,
    optimizer="sgd",
    mixing=None,
    side=None,
    regions=(),
):
    shape = layout(*variables)
    return Setup(
        worker=worker,
        workers=workers,
        replica=Replica(shape, torch.zeros(shape.size), kind=optimizer, learning_rate=learning_rate, decay=decay),
        mixing=mixing or {peer: 1 / workers for peer in range(workers) if peer != worker},
        batch_size=batch_size,
        training_samples=samples,
        shard_samples=samples // workers,
        iterations=iterations,
        side=side,
        regions=regions,
    )


def team(system: dict, count: int, **keys: object) -> list[Worker]:
    """So many workers of a system on its topology; `keys` are for their setups."""
    topology = compose(SystemSpec.model_validate(system)).topology
    mixing = mixing_weights(topology, count, seed=0)
    return workers_of(
        system,
        [setup(index, count, **{"mixing": dict(mixing[index]), "side": index % 2, **keys}) for index in range(count)],
    )


def workers_of(system: dict, setups: Sequence[Setup]) -> list[Worker]:
    composed = compose(SystemSpec.model_validate(system))
    return [composed.worker(each) for each in setups]


def noise(worker: int, iteration: int, entries: int = 6) -> torch.Tensor:
    """A gradient [entries] that differs by worker and iteration."""
    return torch.randn(entries, generator=torch.Generator().manual_seed(1000 * worker + iteration))


def noisy(worker: Worker, batch_size: int) -> tuple[float, torch.Tensor]:
    """`noise` as `Gradients`."""
    return 1.0, noise(worker.setup.worker, worker.iteration, worker.replica.layout.size)


def trained(
    system: dict,
    count: int = 3,
    iterations: int = 8,
    *,
    seed: int | None = None,
    gradients: Gradients | None = None,
    **keys: object,
) -> list[torch.Tensor]:
    """The parameters [P] of a system's workers after so many iterations, by default on noise.

    Delays are random with a seed, and else nothing. `keys` are for the workers' setups.
    """
    workers = team(system, count, iterations=iterations, **keys)
    run(workers, gradients or noisy, delays=(lambda _: 0.0) if seed is None else random_delays(seed, unequal=True))
    return [worker.replica.parameters for worker in workers]


def sent_by(workers: Sequence[Worker]) -> list[list[Message]]:
    """The messages that each worker sends from now on."""
    sent: list[list[Message]] = [[] for _ in workers]

    def noting(worker: Worker, messages: list[Message]) -> None:
        handle = worker.handle

        def noted(event, now):
            actions = handle(event, now)
            messages.extend(action.message for action in actions if isinstance(action, Send))
            return actions

        worker.handle = noted

    for worker, messages in zip(workers, sent, strict=True):
        noting(worker, messages)
    return sent


def servers_of(system: dict, count: int, kind: type[ParameterServer] = ParameterServer) -> list[ParameterServer]:
    """The parameter servers of a system with so many workers, if it has any."""
    composed = compose(SystemSpec.model_validate(system))
    hosts = getattr(composed.topology, "hosts", ())
    parameters = composed.choices["exchange"].parameters
    return [
        kind(
            count + number,
            count,
            Replica(layout(end - begin), torch.zeros(end - begin), learning_rate=0.1),
            begin,
            parameters,
        )
        for number, (begin, end) in enumerate(by_bytes(6, len(hosts)) if hosts else [])
    ]


def measured(links: LinkMonitor, *rates: float) -> None:
    """The links to peers 1, 2, ... have just carried so many bytes a second, and a gradient has taken a second."""
    for peer, rate in enumerate(rates, start=1):
        links.queued(peer, 10**6, 0.0)
        links.sent(peer, 0.0)
        links.timed(peer, 10**6, 10**6 / rate)
    links.computed(1.0)


def random_delays(seed: int, *, unequal: bool = False) -> Delays:
    """Unbounded delays of 1 s on average; if `unequal`, a second more for each participant of a lower number."""
    random = Random(seed)
    return lambda participant: random.expovariate(1.0) * (1 + participant if unequal else 1)


def run(
    workers: Sequence[Worker],
    gradients: Gradients,
    seconds: Callable[[Worker, int], float] = lambda worker, batch_size: 1.0,
    bandwidth: float = 1e6,
    most: int = 100_000,
    deaths: Mapping[int, int] = {},
    delays: Delays = lambda participant: 0.0,
    servers: Sequence[ParameterServer] = (),
) -> list[list[Report | Abort]]:
    """Run the workers until all have stopped (or `most` events), and return their reports.

    Each message is encoded and decoded. Actions take effect in the order in which they were returned; with `delays`,
    only the messages of one channel keep their order. `deaths` are workers that fail after so many iterations; their
    peers are notified after their last messages.
    """
    participants = [*workers, *servers]
    parameters = workers[0].replica.layout.size
    reports: list[list[Report | Abort]] = [[] for _ in workers]
    dead: set[int] = set()
    planned: list[tuple[float, int, int, Event]] = []
    numbers = count()
    last: defaultdict[Hashable, float] = defaultdict(float)
    """The time of the last event of each channel."""
    time = 0.0

    def plan(index: int, event: Event, due: float, channel: Hashable) -> float:
        """Schedule a participant's event, not before those of the same channel."""
        last[channel] = due = max(due, last[channel])
        heappush(planned, (due, next(numbers), index, event))
        return due

    for index in range(len(participants)):
        plan(index, Started(), 0.0, index)
    for _ in range(most):
        if not planned:
            break
        due, _, index, event = heappop(planned)
        if index in dead:
            continue
        if index in deaths and workers[index].iteration >= deaths[index]:
            dead.add(index)
            for peer in workers[index].setup.peers:
                all_there = max(last[index, peer, channel] for channel in Channel)
                plan(peer, PeerLost(index), max(time, all_there), (index, peer, Channel.CONTROL))
            continue
        time = max(time, due) + 1e-3
        for action in participants[index].handle(event, time):
            match action:
                case Compute(batch_size):
                    loss, gradient = gradients(workers[index], batch_size)
                    ready = GradientReady(loss, gradient, seconds(workers[index], batch_size))
                    plan(index, ready, time + delays(index), index)
                case Profile(sizes):
                    measured = ProfileReady(tuple((b, seconds(workers[index], b)) for b in sizes))
                    plan(index, measured, time + delays(index), index)
                case Send(peer, message):
                    data = message.encode()
                    assert len(data) == message.size
                    assert index >= len(workers) or peer in workers[index].setup.peers, "nothing is sent to a lost peer"
                    left, channel = time, message.body.channel
                    if channel is Channel.DATA:
                        timed = MessageTimed(peer, len(data), len(data) / bandwidth)
                        left = plan(index, timed, time + delays(index), (index, peer))
                        plan(index, MessageSent(peer, len(data)), left, (index, peer))
                    arrived = MessageArrived(decode(data, workers=len(participants), parameters=parameters))
                    plan(peer, arrived, left + delays(index), (index, peer, channel))
                case Report() | Abort():
                    reports[index].append(action)
                case Stop() | Joined() | LeaveCompleted():
                    pass
                case _:
                    assert_never(action)
    return reports
