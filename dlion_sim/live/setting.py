"""What every participant of a run works out from the scenario for itself, and its own part in it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from dlion_sim import __version__
from dlion_sim.errors import InputError
from dlion_sim.learning import (
    BatchSampler,
    Dataset,
    Layout,
    Replica,
    build,
    class_histogram,
    flatten,
    load,
    partition,
    training_flops,
)
from dlion_sim.learning.partition import Indices
from dlion_sim.live.machine import Pace
from dlion_sim.protocol.choices import Setup
from dlion_sim.protocol.compose import System, compose
from dlion_sim.protocol.exchange import ParameterServerExchange
from dlion_sim.protocol.exchange.partitions import by_bytes
from dlion_sim.protocol.server import ParameterServer
from dlion_sim.protocol.topology import mixing_weights
from dlion_sim.protocol.worker import Worker
from dlion_sim.scenario import Scenario, dump
from dlion_sim.scenario.topology import ParameterServers, ServerHost
from dlion_sim.streams import stream, stream_seed

_CORE_FLOPS = 1.9e9
"""Effective FLOP/s of one core, from which a model's cost is charged where the scenario states none."""


@dataclass(frozen=True)
class Setting:
    """A run as it follows from its scenario, the same for all. Workers are numbered first, then parameter servers."""

    scenario: Scenario
    """With every default of its system."""
    system: System
    dataset: Dataset
    model: nn.Module
    """With everybody's initial parameters."""
    shards: Sequence[Indices]
    """The training samples of each worker."""
    core_seconds_per_sample: float

    @classmethod
    def of(cls, scenario: Scenario) -> Setting:
        """Raises InputError for a scenario that cannot be run."""
        system = compose(scenario.system)
        dataset = load(scenario.workload.dataset)
        model = build(
            scenario.workload.model, dataset.input_shape, dataset.classes, stream_seed(scenario.seed, "model")
        )
        beta = scenario.workload.compute_time.beta
        return cls(
            scenario=scenario.model_copy(update={"system": system.spec}),
            system=system,
            dataset=dataset,
            model=model,
            shards=_shards(scenario, dataset),
            core_seconds_per_sample=training_flops(model, dataset.input_shape) / _CORE_FLOPS if beta is None else beta,
        )

    @property
    def workers(self) -> int:
        """How many workers there are."""
        return len(self.shards)

    @property
    def hosts(self) -> Sequence[int | ServerHost]:
        """Where each parameter server is: at a worker, by number, or on a machine of its own."""
        return self.system.topology.hosts if isinstance(self.system.topology, ParameterServers) else ()

    @property
    def participants(self) -> int:
        """Workers and parameter servers."""
        return self.workers + len(self.hosts)

    @property
    def parameters(self) -> int:
        """Entries of the model."""
        return Layout.of(self.model).size

    @property
    def digest(self) -> bytes:
        """32 bytes that tell this run from any other scenario, seed or version of this program."""
        return hashlib.sha256(f"{__version__}\n{dump(self.scenario)}".encode()).digest()

    @property
    def manifest(self) -> dict[str, Any]:
        """What the manifest of the run tells of it, wherever it runs."""
        labels = self.dataset.train_labels.numpy()
        return {
            "way": "live",
            "scenario": self.scenario.name,
            "system": self.scenario.system.name,
            "seed": self.scenario.seed,
            "device": "cpu",
            "device_name": "CPU",
            "workers": [worker.name for worker in self.scenario.cluster.workers],
            "parameters": self.parameters,
            "core_seconds_per_sample": self.core_seconds_per_sample,
            "partition": class_histogram(labels, self.shards, self.dataset.classes),
            "run": self.digest.hex(),
        }

    def neighbours(self, rank: int) -> Sequence[int]:
        """Whom a participant exchanges messages with: a worker's peers, or all workers for a server."""
        if rank >= self.workers:
            return range(self.workers)
        return tuple(mixing_weights(self.system.topology, self.workers, self.scenario.seed)[rank])

    def same_machine(self, rank: int) -> set[int]:
        """Those on the machine of a participant, itself apart."""
        places = [*range(self.workers), *self.hosts]
        return {other for other, place in enumerate(places) if place == places[rank] and other != rank}

    def worker(self, rank: int) -> Worker:
        """A worker. Raises InputError where the system does not fit the run, or needs to know what nobody can."""
        mixing = mixing_weights(self.system.topology, self.workers, self.scenario.seed)
        setup = Setup(
            worker=rank,
            workers=self.workers,
            replica=self._replica(Layout.of(self.model), flatten(self.model)),
            mixing=mixing[rank],
            batch_size=self.scenario.workload.batch_size,
            training_samples=len(np.unique(np.concatenate(self.shards))),
            shard_samples=len(self.shards[rank]),
            iterations=self.scenario.iterations,
            seed=self.scenario.seed,
        )
        worker = self.system.worker(setup)
        if worker.choices.exchange.needs_oracle:
            raise InputError(
                "it goes by an oracle of the links' bandwidths, which only a simulation has",
                path="system.exchange.bandwidth",
                allowed="measured",
            )
        return worker

    def server(self, rank: int) -> ParameterServer:
        """A parameter server, with its part of the model."""
        exchange = self.system.choices["exchange"].parameters
        assert isinstance(exchange, ParameterServerExchange.Parameters)
        initial = flatten(self.model)
        begin, end = by_bytes(len(initial), len(self.hosts))[rank - self.workers]
        replica = self._replica(Layout(("part",), ((end - begin,),)), initial[begin:end])
        return ParameterServer(rank, self.workers, replica, begin, exchange)

    def sampler(self, worker: int) -> BatchSampler:
        """Which samples a worker takes next."""
        return BatchSampler(self.shards[worker], stream(self.scenario.seed, "batches", worker))

    def pace(self, worker: int) -> Pace:
        """How long a worker's machine takes."""
        return Pace(
            self.scenario.cluster.workers[worker].compute,
            alpha=self.scenario.workload.compute_time.alpha,
            beta=self.core_seconds_per_sample,
            rng=stream(self.scenario.seed, "compute", worker),
        )

    def _replica(self, layout: Layout, initial: torch.Tensor) -> Replica:
        optimizer = self.scenario.workload.optimizer
        return Replica(
            layout,
            initial,
            kind=optimizer.kind,
            learning_rate=optimizer.learning_rate,
            momentum=optimizer.momentum,
        )


def _shards(scenario: Scenario, dataset: Dataset) -> list[Indices]:
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
