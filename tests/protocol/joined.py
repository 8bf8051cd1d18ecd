"""Workers joined by a list: a driver without clock, network or threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence

import torch

from dlion_sim.learning.flat import Layout
from dlion_sim.learning.replica import Replica, constant
from dlion_sim.protocol.choices import Setup
from dlion_sim.protocol.compose import compose
from dlion_sim.protocol.events import (
    Abort,
    Compute,
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
from dlion_sim.protocol.messages import Channel, decode
from dlion_sim.protocol.worker import Worker
from dlion_sim.scenario import SystemSpec

Gradients = Callable[[Worker, int], tuple[float, torch.Tensor]]
"""Loss and gradient [P] of a worker's next batch of that size."""


def layout(*sizes: int) -> Layout:
    return Layout(tuple(f"v{i}" for i in range(len(sizes))), tuple((size,) for size in sizes))


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
    mixing=None,
    side=None,
):
    shape = layout(*variables)
    return Setup(
        worker=worker,
        workers=workers,
        replica=Replica(shape, torch.zeros(shape.size), learning_rate=learning_rate, decay=decay),
        mixing=mixing or {peer: 1 / workers for peer in range(workers) if peer != worker},
        batch_size=batch_size,
        training_samples=samples,
        shard_samples=samples // workers,
        iterations=iterations,
        side=side,
    )


def workers_of(system: dict, setups: Sequence[Setup]) -> list[Worker]:
    composed = compose(SystemSpec.model_validate(system))
    return [composed.worker(each) for each in setups]


def run(
    workers: Sequence[Worker],
    gradients: Gradients,
    seconds: Callable[[Worker, int], float] = lambda worker, batch_size: 1.0,
    bandwidth: float = 1e6,
    most: int = 100_000,
    deaths: Mapping[int, int] = {},
) -> list[list[Report | Abort]]:
    """Let the workers go on in turn until all have stopped (or `most` events), and return what they report.

    Each message crosses its wire format; each action is done in the order in which it was asked for. Some workers may
    die after so many iterations, of which their peers learn once all messages from them are there.
    """
    reports: list[list[Report | Abort]] = [[] for _ in workers]
    dead: set[int] = set()
    events = deque((index, Started()) for index in range(len(workers)))
    time = 0.0
    for _ in range(most):
        if not events:
            break
        index, event = events.popleft()
        if index in dead:
            continue
        if workers[index].iteration >= deaths.get(index, most):
            dead.add(index)
            events.extend((peer, PeerLost(index)) for peer in workers[index].setup.peers)
            continue
        time += 1e-3
        for action in workers[index].handle(event, time):
            match action:
                case Compute(batch_size):
                    loss, gradient = gradients(workers[index], batch_size)
                    events.append((index, GradientReady(loss, gradient, seconds(workers[index], batch_size))))
                case Profile(sizes):
                    events.append((index, ProfileReady(tuple((b, seconds(workers[index], b)) for b in sizes))))
                case Send(peer, message):
                    data = message.encode()
                    assert len(data) == message.size
                    assert peer in workers[index].setup.peers, "nothing goes to who is lost"
                    if message.body.channel is Channel.DATA:
                        events.append((index, MessageTimed(peer, len(data), len(data) / bandwidth)))
                        events.append((index, MessageSent(peer, len(data))))
                    parameters = workers[peer].replica.layout.size
                    events.append((peer, MessageArrived(decode(data, workers=len(workers), parameters=parameters))))
                case Report() | Abort():
                    reports[index].append(action)
                case Stop():
                    pass
    return reports
