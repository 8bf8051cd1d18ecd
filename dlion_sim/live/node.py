"""One node: takes part in a run as one of its participants, and writes down its part."""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack, closing
from dataclasses import asdict
from itertools import count

from dlion_sim.assembly import Recorder, Setting
from dlion_sim.assembly.setting import CPU
from dlion_sim.errors import InputError
from dlion_sim.interrupts import Interrupts
from dlion_sim.learning import Replica
from dlion_sim.learning.process import device_of_node, frozen_objects, one_core
from dlion_sim.live import event_loop
from dlion_sim.live.driver import Driver
from dlion_sim.live.gathering import manifest_of, part_folder
from dlion_sim.live.member import Member, Outcome, take_part
from dlion_sim.live.node_config import LEFT, NodeConfig
from dlion_sim.live.watching import watch
from dlion_sim.protocol.worker import Worker
from dlion_sim.results import Run, RunWriter
from dlion_sim.scenario import Scenario, dump

_LEAST_URGENT = 19


def run_node(scenario: Scenario, config: NodeConfig) -> Run:
    """Take part in a run, then evaluate what the worker's parameters were, and return the folder of the node's part.

    Raises InputError for what cannot be run, and where the others cannot be reached.
    """
    # Step 1: get ready.
    setting = Setting.of(scenario, device_of_node(config.device, config.rank), home=CPU)  # Messages are made there.
    config.check(setting)
    # To the very end: a node whose run ended just before it was asked to end has its part to write.
    with Interrupts() as interrupts:
        with ExitStack() as stack:
            # As in a simulation: the protocol's own operators are short.
            stack.enter_context(one_core())
            incarnation = _incarnation(config)
            made = Member.of(setting, config.rank, paced=config.paced, incarnation=incarnation, joins=config.joins)
            member = stack.enter_context(closing(made))
            about = {"paced": config.paced, "rank": config.rank, "incarnation": incarnation}
            manifest, scenario_yaml = {**manifest_of(setting), **about}, dump(setting.scenario)
            stack.enter_context(frozen_objects())
            began = config.told() if config.told else None
            listener = stack.enter_context(config.listener())
            writer = RunWriter.create(
                part_folder(config.output, config.rank, incarnation),
                scenario_yaml=scenario_yaml,
                manifest=manifest,
            )
            recorder = Recorder(writer, [config.rank], each_transfer=scenario.records_transfers)
            # Step 2: take part.
            try:
                leaves = scenario.availability is not None

                def watched(driver: Driver) -> None:
                    leave = driver.leave if leaves else None
                    watch(driver.interrupt, interrupts, attached=config.attached, leave=leave)

                outcome = event_loop.run(take_part(setting, config, listener, member, recorder, watched, began=began))
            except InputError:
                shutil.rmtree(writer.folder)  # It has never begun.
                raise
        # Step 3: evaluate, and sum up; who has left does so while the others go on.
        if outcome.ending.stopped_by == LEFT:
            config.left()
            os.nice(_LEAST_URGENT)
        if isinstance(member.participant, Worker):
            _evaluate(setting, config.rank, member.participant, outcome, recorder)
        late = asdict(member.machine.lateness) if member.machine else None
        measured = {
            "late": late,
            "lost": {str(rank): reason for rank, reason in outcome.lost.items()},
            "refused_connections": outcome.refused_connections,
            **({"datagrams": asdict(outcome.datagrams)} if outcome.datagrams else {}),
        }
        writer.finish(recorder.summary(outcome.ending, late=late), manifest=measured)
    return Run.open(writer.folder)


def _incarnation(config: NodeConfig) -> int:
    """How often the participant's process has ended before."""
    if config.incarnation is not None:
        return config.incarnation
    return next(
        number for number in count() if not (config.joins and part_folder(config.output, config.rank, number).exists())
    )


def _evaluate(setting: Setting, rank: int, worker: Worker, outcome: Outcome, recorder: Recorder) -> None:
    """Score the worker's parameters as they were, and those at the run's end on all samples too."""
    samples = setting.evaluation_samples
    replica = Replica(worker.replica.layout, worker.replica.parameters, learning_rate=worker.replica.learning_rate)
    with closing(setting.evaluator()) as evaluator:
        for snapshot in outcome.snapshots:
            replica.write(0, snapshot.parameters)
            moment = setting.moment(snapshot.time)
            (score,) = evaluator.evaluate([replica], samples["curve"], moment)
            recorder.evaluation(rank, score, snapshot.iteration, snapshot.time)
        if outcome.snapshots and outcome.ending.stopped_by != LEFT and samples["curve"] < samples["full"]:
            (score,) = evaluator.evaluate([replica], samples["full"], moment)
            recorder.full_evaluation(rank, score, snapshot.iteration, snapshot.time)
