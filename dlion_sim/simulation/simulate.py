"""From a scenario to a run folder: puts a simulation together, runs it, and writes down what it measured."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Literal

import torch

from dlion_sim.errors import InputError
from dlion_sim.learning import Evaluator, Layout, build, class_histogram, gradient_executor, load, training_flops
from dlion_sim.protocol.compose import compose
from dlion_sim.results import Run, RunWriter, environment, summarize
from dlion_sim.scenario import Scenario, dump
from dlion_sim.scenario.topology import ParameterServers
from dlion_sim.simulation.compute import CORE_FLOPS
from dlion_sim.simulation.engine import Engine, Progress, StopRule
from dlion_sim.simulation.participants import servers_of, shards_of, workers_of
from dlion_sim.simulation.recording import Recorder
from dlion_sim.simulation.topology import Topology, check_clouds
from dlion_sim.streams import stream_seed

Device = Literal["auto", "cpu", "cuda"]
Status = Literal["completed", "interrupted", "failed"]


def simulate(
    scenario: Scenario,
    folder: Path,
    *,
    device: Device = "auto",
    force: bool = False,
    interrupted: Callable[[], bool] = lambda: False,
    observe: Callable[[Progress], None] = lambda progress: None,
) -> Run:
    """Run a scenario in virtual time and return its run folder.

    `interrupted` is asked after every event, and once it says so the run ends there, in a folder that tells it;
    `observe` is told a few times a second. `force` replaces a run that `folder` holds. Raises InputError, before
    anything is written, for a scenario that cannot be run.
    """
    system = compose(scenario.system)
    torch_device = _device(device)
    dataset = load(scenario.workload.dataset)
    model = build(scenario.workload.model, dataset.input_shape, dataset.classes, stream_seed(scenario.seed, "model"))
    shards = shards_of(scenario, dataset)
    beta = scenario.workload.compute_time.beta
    if beta is None:
        beta = training_flops(model, dataset.input_shape) / CORE_FLOPS
    manifest = {
        **environment(),
        "way": "simulate",
        "scenario": scenario.name,
        "system": scenario.system.name,
        "seed": scenario.seed,
        "device": str(torch_device),
        "device_name": torch.cuda.get_device_name() if torch_device.type == "cuda" else "CPU",
        "workers": [place.name for place in scenario.cluster.workers],
        "parameters": Layout.of(model).size,
        "core_seconds_per_sample": beta,
        "partition": class_histogram(dataset.train_labels.numpy(), shards, dataset.classes),
    }
    nodes = workers_of(scenario, system, model, torch_device, shards, beta)
    hosts = system.topology.hosts if isinstance(system.topology, ParameterServers) else []
    check_clouds(hosts, scenario.cluster)
    resolved = scenario.model_copy(update={"system": system.spec})
    writer = RunWriter.create(folder, scenario_yaml=dump(resolved), manifest=manifest, force=force)
    recorder = Recorder(writer, len(shards))
    with ExitStack() as stack:
        engine = Engine(
            nodes=nodes,
            servers=servers_of(scenario, system, model, torch_device),
            topology=Topology(scenario.cluster, hosts),
            executor=stack.enter_context(closing(gradient_executor(model, dataset, torch_device))),
            evaluator=stack.enter_context(closing(Evaluator(model, dataset, torch_device))),
            recorder=recorder,
            evaluate_every=scenario.workload.evaluate_every,
            stop=StopRule(scenario.duration, scenario.target_accuracy),
        )
        # The protocol's own operators are short; waking a second core for each costs more than it brings.
        stack.callback(torch.set_num_threads, torch.get_num_threads())
        torch.set_num_threads(1)
        # What is there by now stays until the end: the garbage collector need not walk it over and over.
        stack.callback(gc.unfreeze)
        gc.collect()
        gc.freeze()
        try:
            stopped_by = engine.run(interrupted, observe)
        except BaseException as error:
            writer.finish(_summary(scenario, recorder, engine.now, "failed", repr(error)))
            raise
    status: Status = "interrupted" if stopped_by == "interrupt" else "completed"
    writer.finish(_summary(scenario, recorder, engine.now, status, stopped_by))
    return Run.open(folder)


def _device(device: Device) -> torch.device:
    available = torch.cuda.is_available()
    if device == "cuda" and not available:
        raise InputError("this machine has no GPU that PyTorch can use", file="--device cuda", allowed="auto, cpu")
    return torch.device("cuda" if available and device != "cpu" else "cpu")


def _summary(
    scenario: Scenario,
    recorder: Recorder,
    virtual_seconds: float,
    status: Status,
    stopped_by: str,
) -> dict[str, Any]:
    return summarize(
        scenario=scenario.name,
        system=scenario.system.name,
        seed=scenario.seed,
        status=status,
        stopped_by=stopped_by,
        virtual_seconds=virtual_seconds,
        wall_seconds=recorder.wall_seconds,
        evaluation_seconds=recorder.evaluation_seconds,
        samples=recorder.samples,
        bytes_sent=recorder.bytes_sent,
        iterations=recorder.iterations,
        last_losses=recorder.last_losses,
        evaluations=recorder.evaluations,
        target=scenario.target_accuracy,
    )
