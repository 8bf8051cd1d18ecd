"""From a scenario to a run folder: puts a simulation together, runs it, and writes down what it measured."""

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
from dlion_sim.results import FolderLock, Run, RunWriter, environment
from dlion_sim.results.run_folder import MANIFEST, SCENARIO
from dlion_sim.scenario import Packets, Scenario, dump, load
from dlion_sim.simulation.carrier import Carrier
from dlion_sim.simulation.checkpointing.checkpoint import Checkpoint, Checkpoints, Identity
from dlion_sim.simulation.churn import Churn, Delays
from dlion_sim.simulation.delivery import Transport
from dlion_sim.simulation.engine import Engine, Progress, StopRule
from dlion_sim.simulation.equipment import Equipment, Newcomers, Node
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

    `interrupted` is asked after every event, and once it says so the run ends there, in a folder that tells it;
    `observe` is told a few times a second. `force` replaces a run that `folder` holds; `manifest` adds what the caller
    knows of the run. At the virtual time `until` (s), if there is one, it is interrupted likewise. Every
    `checkpoint_every` seconds of wall time, and when it is interrupted, the run's state is saved, for `resume`; None
    saves nothing. Raises InputError, before anything is written, for a scenario that cannot be run.
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
            routing=_routing(setting),
            transport=carrier,
            churn=_churn(setting),
            equipment=equipment,
            recorder=Recorder(
                writer, range(setting.workers), wall=lambda _: wall(), each_transfer=scenario.records_transfers
            ),
            evaluate_every=scenario.workload.evaluate_every,
            evaluation_samples=setting.evaluation_samples,
            stop=StopRule(scenario.duration, setting.target),
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
    """Go on with the run in `folder`, which was ended early, from its last checkpoint.

    It comes to the same as if it had never been ended, to the bit, all wall-clock columns apart.

    Args:
        folder: The run folder.
        checkpoint_every: Seconds of wall time between two checkpoints; None for none.
        until: The virtual time (s) at which to interrupt it once more; None: it is to be completed.
        interrupted: Asked after every event whether to end it there.
        observe: JsonDocument a few times a second how far it is.

    Returns:
        The run, completed or interrupted.

    Raises:
        InputError: The run has ended, still goes on, or has no checkpoint which goes with its scenario and this
            software. The folder is left as it is.
    """
    Run.open(folder)
    with closing(FolderLock(folder)) as hold:
        former = Run.open(folder)  # As it is now that nobody else writes it.
        if former.manifest["status"] == "completed":
            raise InputError("is complete", file=folder, allowed="a run that was ended early")
        scenario = load(folder / SCENARIO)
        setting = Setting.of(scenario, device_named("cpu" if former.manifest["device"] == "cpu" else "cuda"))
        identity = Identity.of(setting)
        checkpoint = Checkpoint.of(folder, identity)
        if former.manifest["workers"] != manifest_fields(setting)["workers"]:
            allowed = f"those of {SCENARIO}"
            raise InputError("tells of other workers", file=folder / MANIFEST, path="workers", allowed=allowed)
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
    """Go on until the run ends in one way or another, and complete its folder."""

    def between_events(progress: Progress) -> None:
        observe(progress)
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
        writer.finish(engine.summary("failed", engine.abort_reason))
        checkpoints.remove()
    else:
        writer.finish(engine.summary("completed", stopped_by))
        checkpoints.remove()


def _sample_every(scenario: Scenario) -> float | None:
    """Virtual seconds between rows of queues, in a network that has them."""
    model = scenario.network.model
    return (model.sample_every or scenario.workload.evaluate_every) if isinstance(model, Packets) else None


def _carrier(setting: Setting) -> Callable[..., Carrier]:
    """What makes the transport that a scenario asks for. Raises InputError where its network does not know that."""
    scenario = setting.scenario
    check(scenario)
    if isinstance(scenario.network.model, Packets):
        # Not for flows: it takes a while to load, and longer to compile.
        from dlion_sim.simulation.packets import packet_delivery

        return packet_delivery(setting)
    return partial(Transport, tcp=TcpModel.of(scenario.network), scale=setting.scale)


def _routing(setting: Setting) -> Routing:
    return Routing(setting.scenario.cluster, setting.hosts, setting.outages.links)


def _churn(setting: Setting) -> Callable[..., Churn] | None:
    """What makes it known who is there, where that changes."""
    availability = setting.scenario.availability
    if availability is None:
        return None
    delays = Delays(availability.detection, availability.silence, availability.restart)
    neighbours = [tuple(setting.neighbours(number)) for number in range(setting.participants)]
    return partial(Churn, delays=delays, neighbours=neighbours)


def _node(setting: Setting, number: int, incarnation: int, absent: frozenset[int], began: float) -> Node:
    """A worker that begins at that time (s), see `Newcomers`."""
    worker = setting.worker(number, incarnation, absent)
    return Node(worker, setting.machine(number, incarnation, began), setting.sampler(number, incarnation, began))


@contextmanager
def _equipment(setting: Setting) -> Iterator[Equipment]:
    """What computes, for as long as the block lasts, and a process that is set up for it."""
    with ExitStack() as stack:
        # The protocol's own operators are short; waking a second core for each costs more than it brings.
        threads = stack.enter_context(one_core())
        of = setting.model, setting.dataset, setting.device
        executor = gradient_executor(*of, replicas=setting.workers, threads=threads, kernels=setting.kernels)
        stack.enter_context(closing(executor))
        evaluator = stack.enter_context(closing(setting.evaluator(threads)))
        stack.enter_context(frozen_objects())
        yield Equipment(executor, evaluator, Newcomers(setting.outages, partial(_node, setting)), setting.moment)


def _clock(before: float) -> Callable[[], float]:
    """Tells the wall seconds since now, and those `before`."""
    began = time.perf_counter()
    return lambda: before + time.perf_counter() - began
