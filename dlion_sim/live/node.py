"""One node: takes part in a run as one of its participants, and writes its part of the results."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import socket
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path

from dlion_sim.assembly import Recorder, Setting
from dlion_sim.assembly.setting import CPU
from dlion_sim.errors import InputError
from dlion_sim.interrupts import Interrupts
from dlion_sim.learning import Replica
from dlion_sim.learning.process import device_of_node, frozen_objects, one_core
from dlion_sim.live import event_loop
from dlion_sim.live.bounded_loss import BoundedLoss
from dlion_sim.live.datagram_socket import DatagramSocket
from dlion_sim.live.datagrams import Counts
from dlion_sim.live.driver import Driver
from dlion_sim.live.event_loop import first, watch
from dlion_sim.live.gathering import manifest_of, part_folder
from dlion_sim.live.handshake import Credentials, run_digest
from dlion_sim.live.member import Member
from dlion_sim.live.mesh import Mesh
from dlion_sim.live.node_config import LEFT, NodeConfig
from dlion_sim.live.rendezvous import Rendezvous
from dlion_sim.live.session import Terms
from dlion_sim.live.snapshots import Snapshots
from dlion_sim.results import Ending, Run, RunWriter, run_folder
from dlion_sim.scenario import Dlcp, Packets, Scenario, dump

_LOG = logging.getLogger(__name__)
_LEAST_URGENT = 19


def run_node(scenario: Scenario, config: NodeConfig) -> Run | None:
    """Take part in a run, then evaluate its parameters over time, and return the folder of the node's part.

    A node that has never begun has no part: None if it was interrupted before. Raises InputError for a run that cannot
    be live, and if the others cannot be reached.
    """
    # Step 1: get ready.
    setting = Setting.of(scenario, device_of_node(config.device, config.rank), home=CPU)  # Messages are made there.
    config.check(setting)
    # To the very end: a node whose run has just ended still has to write its part.
    with Interrupts() as interrupts:
        with ExitStack() as stack:
            # As in a simulation: the protocol's own operators are short.
            stack.enter_context(one_core())
            incarnation = _incarnation(config)
            made = Member.of(setting, config.rank, paced=config.paced, incarnation=incarnation, joins=config.joins)
            member = stack.enter_context(closing(made))
            about = {"paced": config.paced, "rank": config.rank, "incarnation": incarnation, "begun": False}
            manifest, scenario_yaml = {**manifest_of(setting), **about}, dump(setting.scenario)
            stack.enter_context(frozen_objects())
            began = config.told() if config.told else None
            listener = stack.enter_context(config.listener())
            folder = part_folder(config.output, config.rank, incarnation)
            writer = RunWriter.create(
                folder, scenario_yaml=scenario_yaml, manifest=manifest, force=_never_began(folder)
            )
            recorder = Recorder(writer, [config.rank], each_transfer=scenario.records_transfers)
            # Step 2: take part.

            def begun() -> None:
                config.begun()
                writer.note(begun=True)

            def watched(driver: Driver) -> None:
                leave = driver.leave if scenario.availability else None
                watch(driver.interrupt, interrupts, attached=config.attached, leave=leave)

            taking_part = take_part(
                setting, replace(config, begun=begun), listener, member, recorder, watched, began=began
            )
            try:
                outcome = event_loop.run(taking_part)
            finally:
                if not writer.manifest["begun"]:
                    shutil.rmtree(folder)
            if outcome is None:
                return None
        # Step 3: evaluate, and sum up; a node that has left does so while the others continue.
        if outcome.ending.stopped_by == LEFT:
            config.left()
            os.nice(_LEAST_URGENT)
        if setting.is_evaluated(config.rank):
            _evaluate(setting, config.rank, member.participant.replica, outcome, recorder)
        late = asdict(member.machine.lateness) if member.machine else None
        measured = {
            "late": late,
            "lost": {str(rank): reason for rank, reason in outcome.lost.items()},
            "refused_connections": outcome.refused_connections,
            **({"datagrams": asdict(outcome.datagrams)} if outcome.datagrams else {}),
        }
        writer.finish(recorder.summary(outcome.ending, late=late), manifest=measured)
    return Run.open(writer.folder)


@dataclass(frozen=True)
class Outcome:
    """The outcome of a participant's part in a run."""

    ending: Ending
    snapshots: Snapshots
    lost: Mapping[int, str]
    """Why participants were lost."""
    refused_connections: int
    datagrams: Counts | None
    """Received datagrams, if messages are sent in such."""


async def take_part(
    setting: Setting,
    config: NodeConfig,
    listener: socket.socket,
    member: Member,
    recorder: Recorder,
    watch: Callable[[Driver], None] = lambda driver: None,
    *,
    began: float | None = None,
) -> Outcome | None:
    """Connect with the others and run until the end; `watch` gets the driver, to interrupt it.

    A node that joins may know when the run `began`, by `time.monotonic`. None if it was interrupted before the begin.
    Raises InputError if the run cannot start.
    """
    credentials = Credentials(config.identity, run_digest(setting))
    rendezvous = Rendezvous(
        config.rank,
        setting.neighbours(config.rank),
        config.addresses,
        listener,
        credentials,
        config.timeouts,
        joins=config.joins,
    )
    dlcp = setting.scenario.transport
    datagrams = _datagrams(setting, dlcp, config, listener) if isinstance(dlcp, Dlcp) else None
    try:
        async with asyncio.TaskGroup() as tasks:
            driver = Driver(setting, config, member, recorder, tasks, began=began)
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
        error = first(group)
        if not isinstance(error, InputError) or driver.clock is None:
            raise error from None
        ending = Ending("failed", str(error), driver.now)
    finally:
        if datagrams:
            datagrams.close()
    if driver.clock is None:
        return None
    counts = datagrams.counts if datagrams else None
    if counts and counts.refused:
        _LOG.warning("node %d refused %d of %d datagrams", config.rank, counts.refused, counts.received)
    return Outcome(ending, driver.snapshots, driver.gone, rendezvous.refused, counts)


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


def _incarnation(config: NodeConfig) -> int:
    """The configured one, or the first one without a part."""
    if config.incarnation is not None:
        return config.incarnation
    return next(
        number for number in count() if not (config.joins and part_folder(config.output, config.rank, number).exists())
    )


def _never_began(part: Path) -> bool:
    """Whether a node that was killed before the begin of its run has left this part."""
    return run_folder.holds_run(part) and Run.open(part).manifest.get("begun") is False


def _evaluate(setting: Setting, rank: int, last: Replica, outcome: Outcome, recorder: Recorder) -> None:
    """Evaluate the participant's parameters over time, and the `last` ones on all samples too."""
    samples = setting.evaluation_samples
    replica = Replica(last.layout, last.parameters, learning_rate=last.learning_rate)
    with closing(outcome.snapshots), closing(setting.evaluator()) as evaluator:
        for snapshot in outcome.snapshots:
            replica.write(0, snapshot.parameters)
            moment = setting.moment(snapshot.time)
            (score,) = evaluator.evaluate([replica], samples["curve"], moment)
            recorder.evaluation(rank, score, snapshot.iteration, snapshot.time)
        if outcome.snapshots and outcome.ending.stopped_by != LEFT and samples["curve"] < samples["full"]:
            (score,) = evaluator.evaluate([replica], samples["full"], moment)
            recorder.full_evaluation(rank, score, snapshot.iteration, snapshot.time)
