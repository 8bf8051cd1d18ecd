"""A scenario's workload: its dataset and model, built-in or the user's own, and their cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from torch import nn

from dlion_sim.errors import InputError
from dlion_sim.learning import Dataset, Layout, load, model_for, own_dataset, own_model, training_flops
from dlion_sim.learning.lora import adapted, load_base
from dlion_sim.learning.process import seeded
from dlion_sim.metric import ACCURACY
from dlion_sim.own_code import function, is_reference
from dlion_sim.scenario import CORE_FLOPS, Lora, Scenario, Workload, named
from dlion_sim.streams import stream_seed


@contextmanager
def of_workload() -> Iterator[None]:
    """Adds the path of the workload to errors within the block, unless they have a file of their own."""
    try:
        yield
    except InputError as error:
        raise (error if error.file else error.below("workload")) from error.__cause__


def dataset_of(scenario: Scenario) -> Dataset:
    """The dataset. Raises InputError if it cannot be loaded."""
    name, parameters = named(scenario.workload.dataset)
    own = _own(name, "workload.dataset", scenario)
    with of_workload():
        return own_dataset(name, own) if own else load(name, **parameters)


def model_of(scenario: Scenario, dataset: Dataset) -> tuple[nn.Module, Workload]:
    """The model with common initial parameters, and the workload with costs that depend on the model.

    Raises InputError if it cannot be trained.
    """
    model, lora = _drawn(scenario, dataset)
    return model, _costed(scenario.workload.model_copy(update={"lora": lora}), model, dataset)


def model_drawn_by(worker: int, scenario: Scenario, dataset: Dataset) -> nn.Module:
    """The same model with a worker's own initial parameters."""
    return _drawn(scenario, dataset, worker)[0]


def _drawn(scenario: Scenario, dataset: Dataset, *worker: int) -> tuple[nn.Module, Lora | None]:
    """The model with initial parameters, a `worker`'s own if given, and its LoRA settings, if any."""
    workload, seed = scenario.workload, stream_seed(scenario.seed, "model", *worker)
    name, parameters = named(workload.model)
    own = _own(name, "workload.model", scenario, most=1)
    with of_workload():
        model = own_model(name, own, dataset, seed) if own else model_for(name, dataset, seed, **parameters)
        if workload.lora is None:
            return model, None
        return model, _adapt(model, workload.lora, stream_seed(scenario.seed, "lora", *worker))


def _adapt(model: nn.Module, lora: Lora, seed: int) -> Lora:
    """Leave only adapters of the model to train; returns the settings with the digest of the base."""
    if lora.base is not None:
        lora = lora.model_copy(update={"base_sha256": load_base(model, Path(lora.base), lora.base_sha256)})
    with seeded(seed):
        adapted(model, lora.rank, lora.alpha, lora.targets)
    return lora


def _costed(workload: Workload, model: nn.Module, dataset: Dataset) -> Workload:
    """The workload with complete costs: from the scenario, or else from the model's FLOPs."""
    cost_as, compute_time = workload.cost_as, workload.compute_time
    if cost_as is not None and cost_as.flops is None:
        flops = training_flops(model, dataset.sample) * cost_as.parameters / Layout.of(model).size
        cost_as = cost_as.model_copy(update={"flops": flops})
    if compute_time.beta is None:
        larger = cost_as.flops if cost_as else None
        beta = (larger or training_flops(model, dataset.sample)) / CORE_FLOPS
        compute_time = compute_time.model_copy(update={"beta": beta})
    return workload.model_copy(update={"compute_time": compute_time, "cost_as": cost_as})


def _own(name: str, path: str, scenario: Scenario, most: int = 0) -> Callable[..., object] | None:
    """The user's function, if `name` is a reference."""
    if not is_reference(name):
        return None
    with seeded(0):  # A module may draw random numbers when it is imported.
        return function(name, path, most, scenario.modules)


def check_target(scenario: Scenario, dataset: Dataset) -> None:
    """Raise InputError for a target that the task's metric cannot reach."""
    metric = dataset.task.metric
    if scenario.target_accuracy is not None and metric != ACCURACY:
        problem = f"the metric of '{named(scenario.workload.dataset)[0]}' is {metric.name}"
        raise InputError(problem, path="target_accuracy", allowed=f"target, which is of the {metric.name}")
    if scenario.target is not None and metric == ACCURACY and not 0 < scenario.target <= 1:
        raise InputError(
            f"no accuracy is {scenario.target:g}", path="target", allowed="more than 0, up to 1, e.g. 0.9 for 90 %"
        )
