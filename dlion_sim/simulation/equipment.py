"""What a simulation computes with, and for whom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dlion_sim.assembly import ComputeDevice
from dlion_sim.assembly.outages import Outages
from dlion_sim.learning import BatchSampler, Evaluator, FusedGradientExecutor, GradientExecutor
from dlion_sim.protocol.worker import Worker


@dataclass(frozen=True)
class Node:
    """A worker with its machine and its data."""

    worker: Worker
    device: ComputeDevice
    sampler: BatchSampler


@dataclass(frozen=True)
class Newcomers:
    """When anybody comes and goes, and as what."""

    outages: Outages
    node: Callable[[int, int, frozenset[int], float], Node]
    """A worker that begins: its number, how often it has ended before, which neighbours are absent, and when (s)."""


@dataclass(frozen=True)
class Equipment:
    """What computes, and what is computed: all that is of the process and not of the simulation."""

    executor: GradientExecutor | FusedGradientExecutor
    evaluator: Evaluator
    newcomers: Newcomers
