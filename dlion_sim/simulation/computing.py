"""Workers' computations in virtual time, and the equipment that computes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from dlion_sim.assembly import ComputeDevice, Recorder, StreamSampler
from dlion_sim.assembly.outages import Outages
from dlion_sim.learning import BatchSampler, Evaluator, FusedGradientExecutor, GradientExecutor, Moment, Ticket
from dlion_sim.protocol.events import GradientReady, ProfileReady
from dlion_sim.protocol.worker import Worker
from dlion_sim.simulation.event_queue import EventQueue


@dataclass(frozen=True)
class Node:
    """A worker with its machine and its data."""

    worker: Worker
    device: ComputeDevice
    sampler: BatchSampler | StreamSampler


@dataclass(frozen=True)
class Equipment:
    """The parts of a simulation that belong to the process and not to its state."""

    executor: GradientExecutor | FusedGradientExecutor
    evaluator: Evaluator
    outages: Outages
    node: Callable[[int, int, frozenset[int], float], Node]
    """Makes a worker from its number, its incarnation, its absent neighbours, and the time of its start (s)."""
    moment: Callable[[float], Moment | None]
    """The test distribution at a time (s), if it changes."""


class Computing:
    """The computations of the `nodes`, by worker; each one's outcome is an event for `handle`, when it is over.

    A gradient is started at its virtual start, when its inputs are fixed, and read at its virtual end; in between it is
    computed in parallel with all others that were started and not read. `incarnation` gives the number of a worker's
    process: results for a former one are dropped.
    """

    def __init__(
        self,
        event_queue: EventQueue,
        nodes: Sequence[Node],
        executor: GradientExecutor | FusedGradientExecutor,
        recorder: Recorder,
        *,
        handle: Callable[[int, GradientReady | ProfileReady], None],
        incarnation: Callable[[int], int],
    ) -> None:
        self._event_queue = event_queue
        self._nodes = nodes
        self._executor = executor
        self._recorder = recorder
        self._handle = handle
        self._incarnation = incarnation
        self._gradients: dict[int, Ticket] = {}
        """By worker, those that were started and not read."""
        self._batch_sizes: dict[int, int] = {}
        """By worker, that of the gradient whose iteration has not ended."""

    def equip(self, executor: GradientExecutor | FusedGradientExecutor) -> None:
        """Set the executor, after resuming, and start the gradients again that were not computed."""
        self._executor = executor
        for worker, ticket in self._gradients.items():
            if not ticket.answer.done():
                self._gradients[worker] = executor.submit(ticket.replica, ticket.samples)

    def gradient(self, worker: int, batch_size: int) -> None:
        """Start a worker's gradient, once its samples are ready."""
        node, now = self._nodes[worker], self._event_queue.now
        stall = node.device.feed(batch_size, now)
        fed_at = stall.seconds if stall else 0.0
        seconds = fed_at + node.device.seconds(batch_size, now + fed_at)
        if stall:
            self._recorder.fed(worker, stall)
        self._gradients[worker] = self._executor.submit(node.worker.replica, node.sampler.take(batch_size))
        self._batch_sizes[worker] = batch_size
        self._event_queue.after(seconds, partial(self._on_gradient, worker, self._incarnation(worker), seconds))

    def profile(self, worker: int, batch_sizes: Sequence[int]) -> None:
        measurements = []
        began = end = self._event_queue.now
        for batch_size in batch_sizes:
            seconds = self._nodes[worker].device.seconds(batch_size, end)
            measurements.append((batch_size, seconds))
            end += seconds
        seconds, ready = end - began, ProfileReady(tuple(measurements))
        self._event_queue.after(seconds, partial(self._on_profile, worker, self._incarnation(worker), seconds, ready))

    def reported(self, worker: int) -> None:
        """The iteration of a worker's gradient has ended."""
        self._batch_sizes.pop(worker, None)

    def drop(self, worker: int) -> int | None:
        """A worker's process has ended; returns the batch size of the gradient that is lost with it, if there is
        one."""
        self._gradients.pop(worker, None)
        return self._batch_sizes.pop(worker, None)

    def _on_gradient(self, worker: int, incarnation: int, seconds: float) -> None:
        if incarnation == self._incarnation(worker):
            loss, gradient = self._executor.result(self._gradients.pop(worker))
            self._handle(worker, GradientReady(loss, gradient, seconds))

    def _on_profile(self, worker: int, incarnation: int, seconds: float, ready: ProfileReady) -> None:
        if incarnation == self._incarnation(worker):
            self._recorder.profiled(worker, seconds, self._event_queue.now)
            self._handle(worker, ready)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_executor"}
