"""A participant with its machine, ready to take part in a live run."""

from __future__ import annotations

from dataclasses import dataclass

from dlion_sim import bounded_loss
from dlion_sim.assembly import Setting
from dlion_sim.errors import InputError
from dlion_sim.learning import GradientExecutor
from dlion_sim.learning.process import Device, device_named
from dlion_sim.live.machine import Machine
from dlion_sim.protocol import sums
from dlion_sim.protocol.events import GradientReady, MessageSent, MessageTimed, ProfileReady, Started
from dlion_sim.protocol.phases import Phase
from dlion_sim.protocol.server import ParameterServer
from dlion_sim.protocol.worker import Worker


@dataclass(frozen=True)
class Member:
    """A worker and its machine, or a parameter server."""

    participant: Worker | ParameterServer
    machine: Machine | None

    @classmethod
    def of(cls, setting: Setting, rank: int, *, paced: bool, incarnation: int = 0, joins: bool = False) -> Member:
        """An incarnation of a participant; one that joins has yet to find out which peers are there.

        Raises InputError if the system does not fit the run, or the run cannot be live.
        """
        check_live(setting)
        sums.prepare(setting.layout.size)
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
    """Raise InputError if a run needs what only a simulation has, nobody begins it, or `device` is not available."""
    device_named(device)
    if len(setting.outages.absent_at_start) == setting.participants:
        raise InputError(
            "nobody is there at the start, to begin a live run", path="availability", allowed="one participant or more"
        )
    bounded_loss.check_live(setting.scenario)
    if setting.worker(0).choices.exchange.needs_oracle:
        raise InputError(
            "it uses an oracle of the links' bandwidths, which only a simulation has",
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


def _rehearse(twin: Worker, machine: Machine) -> None:
    """Run half an iteration of a worker's twin, so that all code is loaded and compiled before the start."""
    batch_size, parameters = twin.setup.batch_size, twin.replica.layout.size
    computed = machine.warm_up(batch_size)
    twin.handle(Started(), 0.0)
    if twin.phase is Phase.PROFILING:
        twin.handle(ProfileReady(((batch_size, 1.0),)), 0.0)
    if twin.phase is Phase.RESTING:
        return
    for peer in twin.setup.peers:
        # Then links have a budget, which gradients are cut to.
        twin.setup.links.queued(peer, parameters, 0.0)
        twin.handle(MessageTimed(peer, parameters, 1.0), 0.0)
        twin.handle(MessageSent(peer, parameters), 0.0)
    twin.handle(GradientReady(computed.loss, computed.gradient, 1.0), 0.0)
