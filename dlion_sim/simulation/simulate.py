"""From a scenario to a run folder: assembles a simulation, runs it, and records it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dlion_sim.assembly import Recorder, Setting, manifest_fields
from dlion_sim.bounded_loss import check
from dlion_sim.errors import InputError
from dlion_sim.learning import gradient_executor
from dlion_sim.learning.process import Device, device_named, frozen_objects, one_core
from dlion_sim.results import FolderLock, Run, RunWriter, environment, participants
from dlion_sim.results.run_folder import MANIFEST, SCENARIO, remove_checkpoint
from dlion_sim.scenario import Packets, Scenario, dump, load
from dlion_sim.simulation.carrier import Carrier
from dlion_sim.simulation.checkpointing.checkpoint import Checkpoint, Checkpoints, Identity
from dlion_sim.simulation.churn import Churn
from dlion_sim.simulation.computing import Equipment, Node
from dlion_sim.simulation.delivery import Transport
from dlion_sim.simulation.engine import Engine, Progress
from dlion_sim.simulation.routing import Routing
from dlion_sim.simulation.tcp import TcpModel

CHECKPOINT_EVERY = 60.0
"""Wall seconds."""


def simulate(
    scenario: Scenario,
    folder: Path,
    *,
    device: Device = "auto",
    force: bool = False,
    manifest: Mapping[str, Any] = MappingProxyType({}),
    checkpoint_every: float | None = CHECKPOINT_EVERY,
    until: float | None = None,
    interrupted: Callable[[], bool] = lambda: False,
    observe: Callable[[Progress], None] = lambda progress: None,
) -> Run:
    """Run a scenario in virtual time and return its run folder.

    `interrupted` is called after every event, and ends the run as interrupted if it returns true; so does the virtual
    time `until` (s). `observe` is called a few times a second. `force` replaces a run that `folder` holds; `manifest`
    has further fields. Every `checkpoint_every` seconds of wall time, and when it is interrupted, the run's state is
    saved, for `resume`; None saves nothing. Raises InputError, before anything is written, for an invalid scenario.
    """
    setting = Setting.of(scenario, device_named(device))
    carrier = _carrier(setting)
    absent = setting.outages.absent_at_start
    nodes = [
        _node(setting, worker, 0, absent.intersection(setting.neighbours(worker)), 0.0)
        for worker in range(setting.workers)
    ]
    identity = Identity.of(setting)
    writer = RunWriter.create(
        folder,
        scenario_yaml=dump(setting.scenario),
        manifest={**environment(), "way": "simulate", **manifest_fields(setting), **manifest},
        force=force,
    )
    wall = _clock(0.0)
    with closing(writer), _equipment(setting) as equipment:
        engine = Engine(
            nodes=nodes,
            servers=[setting.server(number, absent) for number in range(setting.workers, setting.participants)],
            routing=Routing(scenario.cluster, setting.hosts, setting.outages.links),
            transport=carrier,
            churn=_churn(setting),
            equipment=equipment,
            recorder=Recorder(
                writer, range(setting.workers), wall=lambda _: wall(), each_transfer=scenario.records_transfers
            ),
            evaluate_every=scenario.workload.evaluate_every,
            evaluation_samples=setting.evaluation_samples,
            duration=scenario.duration,
            target=setting.target,
            per_message=scenario.workload.compute_time.per_message,
            sample_every=_sample_every(scenario),
        )
        checkpoints = Checkpoints(engine, writer, identity, wall, checkpoint_every)
        _run(engine, writer, checkpoints, until, interrupted, observe)
    return Run.open(folder)


def resume(
    folder: Path,
    *,
    checkpoint_every: float | None = CHECKPOINT_EVERY,
    until: float | None = None,
    interrupted: Callable[[], bool] = lambda: False,
    observe: Callable[[Progress], None] = lambda progress: None,
) -> Run:
    """Resume the run in `folder`, which was interrupted, from its last checkpoint.

    The result is the same as without the interruption, to the bit, wall-clock columns apart.

    Args:
        folder: The run folder.
        checkpoint_every: Seconds of wall time between two checkpoints; None for none.
        until: The virtual time (s) at which to interrupt it again; None: it is completed.
        interrupted: Called after every event; ends the run if it returns true.
        observe: Called with the progress a few times a second.

    Returns:
        The run, completed or interrupted.

    Raises:
        InputError: The run is complete or in progress, or has no checkpoint of this scenario and software. The folder
            is not changed.
    """
    Run.open(folder)
    with closing(FolderLock(folder)) as hold:
        former = Run.open(folder)  # Again, now that no other process writes it.
        if former.manifest["status"] == "completed":
            raise InputError("is complete", file=folder, allowed="a run that was ended early")
        scenario = load(folder / SCENARIO)
        setting = Setting.of(scenario, device_named("cpu" if former.manifest["device"] == "cpu" else "cuda"))
        identity = Identity.of(setting)
        checkpoint = Checkpoint.of(folder, identity)
        if former.manifest["workers"] != manifest_fields(setting)["workers"]:
            allowed = f"those of {SCENARIO}"
            raise InputError("has other workers", file=folder / MANIFEST, path="workers", allowed=allowed)
        engine = checkpoint.engine
        with _equipment(setting) as equipment:
            engine.equip(equipment)
            resumed_at = [*former.manifest.get("resumed_at", []), engine.now]
            writer = RunWriter.resume(folder, hold, checkpoint.rows, resumed_at=resumed_at)
            wall = _clock(checkpoint.wall_seconds)
            engine.recorder.attach(writer, lambda _: wall())
            checkpoints = Checkpoints(engine, writer, identity, wall, checkpoint_every)
            _run(engine, writer, checkpoints, until, interrupted, observe)
    return Run.open(folder)


def _run(
    engine: Engine,
    writer: RunWriter,
    checkpoints: Checkpoints,
    until: float | None,
    interrupted: Callable[[], bool],
    observe: Callable[[Progress], None],
) -> None:

    def between_events(progress: Progress) -> None:
        observe(progress)
        if not engine.has_stopped:  # Else its last rows are written, which a resumed run would write again.
            checkpoints.save_if_due()

    try:
        stopped_by = engine.run(interrupted, between_events, until)
        if stopped_by in ("interrupt", "pause"):
            checkpoints.save()
    except BaseException as error:
        writer.finish(engine.summary("failed", repr(error)))
        raise
    if stopped_by in ("interrupt", "pause"):
        writer.finish(engine.summary("interrupted", stopped_by))
    elif stopped_by == "abort":
        peer, reason = engine.abort_peer, engine.abort_reason
        if peer is not None:
            reason += f"; because of {participants(writer.manifest)[peer]}, at {engine.now:.3g} s"
        writer.finish(engine.summary("failed", reason))
        remove_checkpoint(writer.folder)
    else:
        writer.finish(engine.summary("completed", stopped_by))
        remove_checkpoint(writer.folder)


def _sample_every(scenario: Scenario) -> float | None:
    """Virtual seconds between rows of queues, in a network with queues."""
    model = scenario.network.model
    return (model.sample_every or scenario.workload.evaluate_every) if isinstance(model, Packets) else None


def _carrier(setting: Setting) -> Callable[..., Carrier]:
    """The factory of a scenario's carrier. Raises InputError if its network does not support its transport."""
    scenario = setting.scenario
    check(scenario)
    if isinstance(scenario.network.model, Packets):
        # Only here, as it is slow to load and to compile.
        from dlion_sim.simulation.packets import packet_delivery

        return packet_delivery(setting)
    return partial(Transport, tcp=TcpModel.of(scenario.network), scale=setting.scale)


def _churn(setting: Setting) -> Callable[..., Churn] | None:
    availability = setting.scenario.availability
    if availability is None:
        return None
    return partial(
        Churn,
        detection=availability.detection,
        silence=availability.silence,
        restart=availability.restart,
        neighbours=[tuple(setting.neighbours(number)) for number in range(setting.participants)],
    )


def _node(setting: Setting, number: int, incarnation: int, absent: frozenset[int], began: float) -> Node:
    worker = setting.worker(number, incarnation, absent)
    return Node(worker, setting.machine(number, incarnation, began), setting.sampler(number, incarnation, began))


@contextmanager
def _equipment(setting: Setting) -> Iterator[Equipment]:
    """The equipment, and a process that is set up for it, within the block."""
    with ExitStack() as stack:
        # The protocol's own operators are short: waking a second core for each costs more time than it saves.
        threads = stack.enter_context(one_core())
        of = setting.model, setting.dataset, setting.device
        executor = gradient_executor(*of, replicas=setting.workers, threads=threads, kernels=setting.kernels)
        stack.enter_context(closing(executor))
        evaluator = stack.enter_context(closing(setting.evaluator(threads)))
        stack.enter_context(frozen_objects())
        yield Equipment(executor, evaluator, setting.outages, partial(_node, setting), setting.moment)


def _clock(before: float) -> Callable[[], float]:
    began = time.perf_counter()
    return lambda: before + time.perf_counter() - began
