"""The setting of a run: all that follows from its scenario, the same in every way to run it and on every node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor, nn

from dlion_sim import own_code
from dlion_sim.assembly.arrivals import StreamSampler
from dlion_sim.assembly.compute import ComputeDevice, InputPipeline
from dlion_sim.assembly.outages import Outages
from dlion_sim.assembly.server_placement import check_clouds
from dlion_sim.assembly.shards import shards_of, validation_of
from dlion_sim.assembly.stream import DataStream
from dlion_sim.assembly.workload import check_target, dataset_of, model_drawn_by, model_of, of_workload
from dlion_sim.learning import (
    BatchSampler,
    Dataset,
    Evaluator,
    Kernels,
    Layout,
    Moment,
    Replica,
    flatten,
    usable_kernels,
)
from dlion_sim.learning.partition import Indices
from dlion_sim.protocol.choices import Exchange, Setup
from dlion_sim.protocol.compose import System, compose
from dlion_sim.protocol.exchange.parameter_server import ServerParameters
from dlion_sim.protocol.exchange.partitions import by_bytes
from dlion_sim.protocol.server import ParameterServer
from dlion_sim.protocol.sums import WeightedSums
from dlion_sim.protocol.topology import mixing_weights, sides
from dlion_sim.protocol.worker import Worker
from dlion_sim.results import EvaluationSamples
from dlion_sim.scenario import Dlcp, Scenario
from dlion_sim.scenario.system import ServerHost, hosts_of, machines_of
from dlion_sim.streams import stream

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Setting:
    """A resolved scenario, and the factory of its participants: workers, numbered first, then parameter servers."""

    scenario: Scenario
    """With every default of its system, and the cost of computations."""
    system: System
    dataset: Dataset
    model: nn.Module
    """With the common initial parameters, unless each worker draws its own."""
    shards: Sequence[Indices]
    """The training samples of each worker; of a stream, all that arrive."""
    validation: Indices | None
    """The training samples held out for evaluations; None: these are on the test set."""
    device: torch.device
    """The device of gradients."""
    home: torch.device
    """The device of parameters and everything else."""
    stream: DataStream | None = None
    """The arrival of shards at workers, unless they are there from the start."""

    @classmethod
    def of(cls, scenario: Scenario, device: torch.device = CPU, home: torch.device | None = None) -> Setting:
        """Parameters are on `device`, too, by default. Raises InputError for a scenario that cannot be run."""
        system = compose(scenario.system, scenario.modules)
        dataset = dataset_of(scenario)
        check_target(scenario, dataset)
        model, workload = model_of(scenario, dataset)
        with of_workload():
            validation = validation_of(scenario, dataset)
            shards = shards_of(scenario, dataset, validation)
            stream = DataStream.of(scenario, dataset, shards)
        setting = cls(
            scenario=scenario.model_copy(update={"system": system.spec, "workload": workload}),
            system=system,
            dataset=stream.dataset if stream else dataset,
            model=model,
            shards=stream.shards if stream else shards,
            validation=validation,
            device=device,
            home=home or device,
            stream=stream,
        )
        check_clouds(setting.hosts, scenario.cluster)
        _ = setting._mixing  # It checks the hosts of servers,
        _ = setting.outages  # and this the outages.
        if isinstance(scenario.transport, Dlcp):
            scenario.transport.by_variable(setting.layout.names)
        return setting

    @property
    def workers(self) -> int:
        return len(self.shards)

    @property
    def hosts(self) -> Sequence[int | ServerHost]:
        """The host of each parameter server: a worker, by number, or a machine of its own."""
        return hosts_of(self.system.topology)

    @property
    def participants(self) -> int:
        return self.workers + len(self.hosts)

    @property
    def evaluated_server(self) -> int | None:
        """The server whose parameters are evaluated in place of the workers', if the system has one."""
        return self.workers if self.system.evaluates_server else None

    def is_evaluated(self, number: int) -> bool:
        """Whether a participant's parameters are evaluated."""
        return number < self.workers if self.evaluated_server is None else number == self.evaluated_server

    @cached_property
    def outages(self) -> Outages:
        return Outages.of(self.scenario, self.hosts)

    @property
    def target(self) -> float | None:
        """The mean of the task's metric at which the run ends, if any."""
        return self.scenario.target if self.scenario.target_accuracy is None else self.scenario.target_accuracy

    @property
    def own_modules(self) -> frozenset[str]:
        return self.system.own_modules | {own_code.module_of(name) for name in self.scenario.references.values()}

    @property
    def own_sources(self) -> dict[str, str]:
        return {module: own_code.digest(module) for module in sorted(self.own_modules)}

    @cached_property
    def layout(self) -> Layout:
        return Layout.of(self.model)

    @property
    def core_seconds_per_sample(self) -> float:
        """The time of one sample on one core (s)."""
        beta = self.scenario.workload.compute_time.beta
        assert beta is not None, "an unresolved scenario"
        return beta

    @property
    def scale(self) -> float:
        """The number of parameters that each one represents."""
        cost_as = self.scenario.workload.cost_as
        return cost_as.parameters / self.layout.size if cost_as else 1.0

    @cached_property
    def training_samples(self) -> int:
        distinct = {id(shard): shard for shard in self.shards}  # one, if workers share the samples
        return len(np.unique(np.concatenate([*distinct.values()])))

    @cached_property
    def kernels(self) -> Kernels:
        """The kernels that compute the model: the scenario's, if they are available here."""
        return usable_kernels(self.model, self.device, self.scenario.workload.kernels, self.dataset.sample)

    def neighbours(self, number: int) -> Sequence[int]:
        """The participants that one exchanges messages with: a worker's peers, or all workers for a server."""
        return range(self.workers) if number >= self.workers else tuple(self._mixing[number])

    def same_machine(self, number: int) -> set[int]:
        """The other participants on a participant's machine."""
        machines = machines_of(self.workers, self.hosts)
        return {other for other, machine in enumerate(machines) if machine == machines[number] and other != number}

    def worker(self, number: int, incarnation: int = 0, absent: frozenset[int] = frozenset()) -> Worker:
        """A worker, with the initial parameters; `incarnation` and `absent` as in `Setup`.

        Raises InputError if the system does not fit the run.
        """
        availability = self.scenario.availability
        return self.system.worker(
            Setup(
                worker=number,
                workers=self.workers,
                replica=self._initial_of(number),
                mixing=self._mixing[number],
                batch_size=self.scenario.workload.batch_size,
                training_samples=self.training_samples,
                shard_samples=self.stream.most_kept(number) if self.stream else len(self.shards[number]),
                regions=self._regions,
                side=self._sides[number],
                iterations=self.scenario.iterations,
                seed=self.scenario.seed,
                sums=self._sums,
                absent=absent,
                on_loss=availability.on_loss if availability else "abort",
                sponsor=availability.sponsor if availability else "nearest",
                incarnation=incarnation,
            )
        )

    def server(self, number: int, absent: frozenset[int] = frozenset()) -> ParameterServer:
        """A parameter server, with its part of the initial parameters; `absent` workers are absent at the start."""
        exchange = self.system.choices["exchange"].parameters
        assert isinstance(exchange, ServerParameters)
        begin, end = by_bytes(self.layout.size, len(self.hosts))[number - self.workers]
        if number == self.evaluated_server:
            replica = self._initial.twin()
        else:
            replica = self._replica(Layout(("part",), ((end - begin,),)), self._initial.parameters[begin:end])
        on_loss = self.scenario.availability.on_loss if self.scenario.availability else "abort"
        seed = self.scenario.seed
        return ParameterServer(
            number, self.workers, replica, begin, exchange, seed=seed, absent=absent, on_loss=on_loss
        )

    def machine(self, worker: int, incarnation: int = 0, began: float = 0.0) -> ComputeDevice:
        """The time model of a worker's machine, for an incarnation that began at `began` (s)."""
        fed_by = self.scenario.workload.input
        return ComputeDevice(
            self.scenario.cluster.workers[worker].compute,
            alpha=self.scenario.workload.compute_time.alpha,
            beta=self.core_seconds_per_sample,
            rng=stream(self.scenario.seed, "compute", worker, *_of_incarnation(incarnation)),
            pipeline=InputPipeline(fed_by, len(self.shards[worker]), began) if fed_by else None,
        )

    def sampler(self, worker: int, incarnation: int = 0, began: float = 0.0) -> BatchSampler | StreamSampler:
        """The sampler of a worker's batches, for an incarnation that began at `began` (s)."""
        rng = stream(self.scenario.seed, "batches", worker, *_of_incarnation(incarnation))
        if self.stream is None:
            return BatchSampler(self.shards[worker], rng)
        sampler = self.stream.sampler(worker, rng)
        sampler.receive(began)  # Earlier arrivals are there, without a test on them.
        return sampler

    def moment(self, now: float) -> Moment | None:
        """The test distribution at a time (s), if it changes."""
        return self.stream.drift.moment(now) if self.stream else None

    @property
    def evaluation_samples(self) -> EvaluationSamples:
        """The numbers of samples of evaluations, and of all."""
        full = len(self.dataset.test_targets if self.validation is None else self.validation)
        return {"curve": min(self.scenario.workload.evaluation_samples or full, full), "full": full}

    def evaluator(self, threads: int | None = None) -> Evaluator:
        """The evaluator of replicas, all on the same samples, with so many `threads` of a CPU."""
        return Evaluator(
            self.model,
            self.dataset,
            self.device,
            validation=self.validation,
            threads=threads,
            kernels=self.kernels,
        )

    def _initial_of(self, worker: int) -> Replica:
        if self.scenario.workload.initial_parameters == "same":
            return self._initial.twin()
        model = model_drawn_by(worker, self.scenario, self.dataset)
        return self._replica(self.layout, flatten(model).to(self.home))

    @cached_property
    def _initial(self) -> Replica:
        return self._replica(self.layout, flatten(self.model).to(self.home))

    @cached_property
    def _mixing(self) -> list[Mapping[int, float]]:
        return mixing_weights(self.system.topology, self.workers, self.scenario.seed)

    @cached_property
    def _regions(self) -> tuple[str, ...]:
        of = {cloud.name: cloud.region or cloud.name for cloud in self.scenario.cluster.clouds}
        return tuple(of[place.cloud] for place in self.scenario.cluster.workers)

    @cached_property
    def _sides(self) -> Sequence[int | None]:
        exchange = self.system.choices["exchange"].implementation
        if issubclass(exchange, Exchange) and exchange.needs_sides:
            return sides(self.system.topology, self.workers, self.scenario.seed)
        return [None] * self.workers

    @cached_property
    def _sums(self) -> WeightedSums:
        return WeightedSums()

    def _replica(self, layout: Layout, initial: Tensor) -> Replica:
        optimizer = self.scenario.workload.optimizer
        return Replica(
            layout,
            initial,
            kind=optimizer.kind,
            learning_rate=optimizer.learning_rate,
            momentum=optimizer.momentum,
            weight_decay=optimizer.weight_decay,
            clip_norm=optimizer.clip_norm,
            decay=optimizer.factor,
        )


def _of_incarnation(incarnation: int) -> tuple[int, ...]:
    """Further keys of random streams of a restarted process."""
    return (incarnation,) if incarnation else ()
