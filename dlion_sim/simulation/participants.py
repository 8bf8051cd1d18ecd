"""Who takes part in a run: workers with their machines and data, and parameter servers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from dlion_sim.errors import InputError
from dlion_sim.learning import BatchSampler, Dataset, Layout, Replica, flatten, partition
from dlion_sim.learning.partition import Indices
from dlion_sim.protocol.choices import Setup
from dlion_sim.protocol.compose import System
from dlion_sim.protocol.exchange import ParameterServerExchange
from dlion_sim.protocol.exchange.partitions import by_bytes
from dlion_sim.protocol.server import ParameterServer
from dlion_sim.protocol.sums import WeightedSums
from dlion_sim.protocol.topology import mixing_weights
from dlion_sim.protocol.worker import Worker
from dlion_sim.scenario import Scenario, Workload
from dlion_sim.scenario.topology import ParameterServers
from dlion_sim.simulation.compute import ComputeDevice
from dlion_sim.streams import stream


@dataclass(frozen=True)
class Node:
    """A worker with its machine and its data."""

    worker: Worker
    device: ComputeDevice
    sampler: BatchSampler


def shards_of(scenario: Scenario, dataset: Dataset) -> list[Indices]:
    """The training samples of each worker. Raises InputError where they are fewer than a batch."""
    spec = scenario.workload.partition
    labels, workers = dataset.train_labels.numpy(), len(scenario.cluster.workers)
    rng = stream(scenario.seed, "partition")
    shards = partition(spec.kind, labels, workers, rng, **spec.model_dump(exclude={"kind"}))
    smallest = min(map(len, shards))
    if scenario.workload.batch_size > smallest:
        raise InputError(
            f"{scenario.workload.batch_size} samples are more than the smallest of the workers' shards holds",
            path="workload.batch_size",
            allowed=f"1 to {smallest}",
        )
    return shards


def workers_of(
    scenario: Scenario,
    system: System,
    model: nn.Module,
    device: torch.device,
    shards: Sequence[Indices],
    core_seconds_per_sample: float,
) -> list[Node]:
    """The workers, all with equal replicas of `model`."""
    layout, initial = Layout.of(model), flatten(model).to(device)
    mixing = mixing_weights(system.topology, len(shards), scenario.seed)
    samples = len(np.unique(np.concatenate(shards)))
    sums = WeightedSums()
    nodes = []
    for place, shard in zip(scenario.cluster.workers, shards, strict=True):
        setup = Setup(
            worker=place.index,
            workers=len(shards),
            replica=_replica(layout, initial, scenario.workload),
            mixing=mixing[place.index],
            batch_size=scenario.workload.batch_size,
            training_samples=samples,
            shard_samples=len(shard),
            iterations=scenario.iterations,
            seed=scenario.seed,
            sums=sums,
        )
        machine = ComputeDevice(
            place.compute,
            alpha=scenario.workload.compute_time.alpha,
            beta=core_seconds_per_sample,
            rng=stream(scenario.seed, "compute", place.index),
        )
        nodes.append(
            Node(system.worker(setup), machine, BatchSampler(shard, stream(scenario.seed, "batches", place.index)))
        )
    return nodes


def servers_of(scenario: Scenario, system: System, model: nn.Module, device: torch.device) -> list[ParameterServer]:
    """The parameter servers, where the system has any, each with its part of `model`."""
    exchange = system.choices["exchange"].parameters
    if not isinstance(system.topology, ParameterServers) or not isinstance(
        exchange, ParameterServerExchange.Parameters
    ):
        return []
    initial, workers = flatten(model).to(device), len(scenario.cluster.workers)
    stretches = by_bytes(len(initial), len(system.topology.hosts))
    return [
        ParameterServer(
            workers + number,
            workers,
            _replica(Layout(("part",), ((end - begin,),)), initial[begin:end], scenario.workload),
            begin,
            exchange,
        )
        for number, (begin, end) in enumerate(stretches)
    ]


def _replica(layout: Layout, initial: torch.Tensor, workload: Workload) -> Replica:
    optimizer = workload.optimizer
    return Replica(
        layout,
        initial,
        kind=optimizer.kind,
        learning_rate=optimizer.learning_rate,
        momentum=optimizer.momentum,
    )
