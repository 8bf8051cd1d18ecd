"""From a scenario to a run folder: puts a simulation together, runs it, and writes down what it measured."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import torch

from dlion_sim.errors import InputError
from dlion_sim.learning import Evaluator, gradient_executor
from dlion_sim.participants import Recorder, Setting
from dlion_sim.results import Ending, Run, RunWriter, Status, environment
from dlion_sim.scenario import Scenario, dump
from dlion_sim.simulation.engine import Engine, Node, Progress, StopRule
from dlion_sim.simulation.topology import Topology

Device = Literal["auto", "cpu", "cuda"]


def simulate(
    scenario: Scenario,
    folder: Path,
    *,
    device: Device = "auto",
    force: bool = False,
    manifest: Mapping[str, Any] = MappingProxyType({}),
    interrupted: Callable[[], bool] = lambda: False,
    observe: Callable[[Progress], None] = lambda progress: None,
) -> Run:
    """Run a scenario in virtual time and return its run folder.

    `interrupted` is asked after every event, and once it says so the run ends there, in a folder that tells it;
    `observe` is told a few times a second. `force` replaces a run that `folder` holds; `manifest` adds what the caller
    knows of the run. Raises InputError, before anything is written, for a scenario that cannot be run.
    """
    setting = Setting.of(scenario, _device(device))
    nodes = [
        Node(setting.worker(worker), setting.machine(worker), setting.sampler(worker))
        for worker in range(setting.workers)
    ]
    writer = RunWriter.create(
        folder,
        scenario_yaml=dump(setting.scenario),
        manifest={**environment(), "way": "simulate", **setting.manifest, **manifest},
        force=force,
    )
    began = time.perf_counter()
    recorder = Recorder(writer, range(setting.workers), wall=lambda _: time.perf_counter() - began)
    model, dataset = setting.model, setting.dataset
    with ExitStack() as stack:
        executor = gradient_executor(model, dataset, setting.device, replicas=len(nodes))
        engine = Engine(
            nodes=nodes,
            servers=[setting.server(number) for number in range(setting.workers, setting.participants)],
            topology=Topology(scenario.cluster, setting.hosts),
            executor=stack.enter_context(closing(executor)),
            evaluator=stack.enter_context(closing(Evaluator(model, dataset, setting.device))),
            recorder=recorder,
            evaluate_every=scenario.workload.evaluate_every,
            evaluation_samples=scenario.workload.evaluation_samples,
            stop=StopRule(scenario.duration, scenario.target_accuracy),
        )
        # The protocol's own operators are short; waking a second core for each costs more than it brings.
        stack.callback(torch.set_num_threads, torch.get_num_threads())
        torch.set_num_threads(1)
        # What is there by now stays until the end: the garbage collector need not walk it over and over.
        stack.callback(gc.unfreeze)
        gc.collect()
        gc.freeze()

        def finish(status: Status, stopped_by: str) -> None:
            recorder.end_interval(engine.now)
            ending = Ending(status, stopped_by, engine.now)
            writer.finish(
                recorder.summary(ending, evaluation_seconds=engine.evaluation_seconds, target=scenario.target_accuracy)
            )

        try:
            stopped_by = engine.run(interrupted, observe)
        except BaseException as error:
            finish("failed", repr(error))
            raise
        finish("interrupted" if stopped_by == "interrupt" else "completed", stopped_by)
    return Run.open(folder)


def _device(device: Device) -> torch.device:
    available = torch.cuda.is_available()
    if device == "cuda" and not available:
        raise InputError("this machine has no GPU that PyTorch can use", file="--device cuda", allowed="auto, cpu")
    return torch.device("cuda" if available and device != "cpu" else "cpu")
