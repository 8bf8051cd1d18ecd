"""A participant on its node: made ready, and taking part."""

from __future__ import annotations

import asyncio
import logging
import math
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from dlion_sim import bounded_loss
from dlion_sim.assembly import Recorder, Setting
from dlion_sim.errors import InputError
from dlion_sim.learning import GradientExecutor
from dlion_sim.learning.process import Device, device_named
from dlion_sim.live.bounded_loss import BoundedLoss
from dlion_sim.live.datagram_socket import DatagramSocket
from dlion_sim.live.datagrams import Counts
from dlion_sim.live.driver import Driver
from dlion_sim.live.handshake import Credentials, run_digest
from dlion_sim.live.machine import Machine
from dlion_sim.live.mesh import Mesh
from dlion_sim.live.node_config import NodeConfig
from dlion_sim.live.observer import Snapshot
from dlion_sim.live.plan import Plan
from dlion_sim.live.rendezvous import Rendezvous
from dlion_sim.live.session import Terms
from dlion_sim.live.watching import first
from dlion_sim.protocol.events import GradientReady, MessageSent, MessageTimed, ProfileReady, Started
from dlion_sim.protocol.phases import Phase
from dlion_sim.protocol.server import ParameterServer
from dlion_sim.protocol.worker import Worker
from dlion_sim.results import Ending
from dlion_sim.scenario import Dlcp, Packets

_LOG = logging.getLogger(__name__)
_EARLY_SECONDS, _LATE_SECONDS = 0.5, 5.0
"""By which somebody may go earlier, or be back later, than the scenario has it."""


@dataclass(frozen=True)
class Member:
    """A worker and its machine, or a parameter server."""

    participant: Worker | ParameterServer
    machine: Machine | None

    @classmethod
    def of(cls, setting: Setting, rank: int, *, paced: bool, incarnation: int = 0, joins: bool = False) -> Member:
        """A participant whose process has ended so often before; one that joins has yet to see who is there.

        Raises InputError where the system does not fit the run, or the run cannot be live.
        """
        check_live(setting)
        absent = frozenset() if joins else setting.outages.absent_at_start & {*setting.neighbours(rank)}
        if rank >= setting.workers:
            return cls(setting.server(rank, absent), None)
        worker = setting.worker(rank, incarnation, absent)
        executor = GradientExecutor(setting.model, setting.dataset, setting.device, threads=1, kernels=setting.kernels)
        pace = setting.machine(rank, incarnation) if paced else None
        tester = setting.evaluator(threads=1) if setting.stream else None
        machine = Machine(executor, worker.replica, setting.sampler(rank, incarnation), pace, tester)
        _rehearse(setting.worker(rank), machine)
        return cls(worker, machine)

    def close(self) -> None:
        """End the machine's threads."""
        if self.machine:
            self.machine.close()


def check_live(setting: Setting, device: Device = "auto") -> None:
    """Raise InputError where a run needs what only a simulation has, or nodes here a GPU that there is not."""
    device_named(device)
    bounded_loss.check_live(setting.scenario)
    if setting.worker(0).choices.exchange.needs_oracle:
        raise InputError(
            "it goes by an oracle of the links' bandwidths, which only a simulation has",
            path="system.exchange.bandwidth",
            allowed="measured",
        )
    if setting.scenario.workload.cost_as is not None:
        raise InputError("real machines and links cost what they cost", path="workload.cost_as", allowed="null")
    if setting.target is not None:
        raise InputError(
            "it cannot end a live run, whose evaluations are done only afterwards",
            path="target" if setting.scenario.target_accuracy is None else "target_accuracy",
            allowed="null",
        )


@dataclass(frozen=True)
class Outcome:
    """What came of a participant's part."""

    ending: Ending
    snapshots: Sequence[Snapshot]
    lost: Mapping[int, str]
    """Why who was lost."""
    refused_connections: int
    datagrams: Counts | None
    """That came, if messages go in such."""


async def take_part(
    setting: Setting,
    config: NodeConfig,
    listener: socket.socket,
    member: Member,
    recorder: Recorder,
    watch: Callable[[Driver], None] = lambda driver: None,
    *,
    began: float | None = None,
) -> Outcome:
    """Connect with the others and run until the end; `watch` is given the driver, to interrupt it if need be.

    Who joins a run may know when that `began`, by `time.monotonic`. Raises InputError where the run cannot start.
    """
    neighbours = setting.neighbours(config.rank)
    credentials = Credentials(config.secret, run_digest(setting))
    rendezvous = Rendezvous(
        config.rank, neighbours, config.addresses, listener, credentials, config.timeouts, joins=config.joins
    )
    plan = Plan(
        workers=setting.workers,
        participants=setting.participants,
        same_machine=setting.same_machine(config.rank),
        duration=setting.scenario.duration,
        evaluate_every=setting.scenario.workload.evaluate_every,
        is_open=setting.scenario.availability is not None,
        absent=setting.outages.absent_at_start,
        returns=partial(_returns, setting),
        next_outage=partial(setting.outages.next_after, config.rank),
        joins=config.joins,
        began=began,
    )
    dlcp = setting.scenario.transport
    datagrams = _datagrams(setting, dlcp, config, listener) if isinstance(dlcp, Dlcp) else None
    try:
        async with asyncio.TaskGroup() as tasks:
            driver = Driver(
                config.rank,
                member.participant,
                member.machine,
                neighbours,
                plan=plan,
                recorder=recorder,
                timeouts=config.timeouts,
                begun=config.begun,
                tasks=tasks,
            )
            links = Mesh(
                Terms(setting.participants, setting.layout.size, config.timeouts.silence),
                delays=dict(enumerate(config.delays)),
                tasks=tasks,
                hub=driver,
                datagrams=datagrams,
            )
            watch(driver)
            ending = await driver.run(links, rendezvous)
    except BaseExceptionGroup as group:
        raise first(group) from None  # Others follow from it.
    finally:
        if datagrams:
            datagrams.close()
    counts = datagrams.counts if datagrams else None
    if counts and counts.refused:
        _LOG.warning("node %d refused %d of %d datagrams", config.rank, counts.refused, counts.received)
    return Outcome(ending, driver.snapshots, driver.gone, rendezvous.refused, counts)


def _returns(setting: Setting, rank: int, now: float) -> bool:
    """Whether somebody who is not there is still to come, as the scenario has it."""
    availability = setting.scenario.availability
    if availability is None:
        return False
    for outage in setting.outages.participant(rank):
        if outage.begin > now + _EARLY_SECONDS:
            return False
        if now < outage.end + availability.restart + _LATE_SECONDS:
            return math.isfinite(outage.end)
    return False


def _datagrams(setting: Setting, dlcp: Dlcp, config: NodeConfig, listener: socket.socket) -> BoundedLoss:
    model = setting.scenario.network.model
    return BoundedLoss(
        config.rank,
        DatagramSocket(listener),
        dlcp,
        setting.layout,
        workers=setting.workers,
        participants=setting.participants,
        priorities=model.priorities if isinstance(model, Packets) else Packets().priorities,
        silence=config.timeouts.silence,
    )


def _rehearse(twin: Worker, machine: Machine) -> None:
    """Go through half an iteration with a worker's twin: what is loaded or compiled on first use is so by the start."""
    batch_size, parameters = twin.setup.batch_size, twin.replica.layout.size
    computed = machine.warm_up(batch_size)
    twin.handle(Started(), 0.0)
    if twin.phase is Phase.PROFILING:
        twin.handle(ProfileReady(((batch_size, 1.0),)), 0.0)
    for peer in twin.setup.peers:
        # So that links are known to carry a part of a gradient.
        twin.setup.links.queued(peer, parameters, 0.0)
        twin.handle(MessageTimed(peer, parameters, 1.0), 0.0)
        twin.handle(MessageSent(peer, parameters), 0.0)
    twin.handle(GradientReady(computed.loss, computed.gradient, 1.0), 0.0)
