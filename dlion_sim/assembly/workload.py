"""What a scenario's workload comes to: its dataset and model, be they ready ones or the user's own, and their cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch import nn

from dlion_sim.errors import InputError
from dlion_sim.learning import Dataset, load, model_for, own_dataset, own_model, training_flops
from dlion_sim.learning.randomness import seeded
from dlion_sim.metric import ACCURACY
from dlion_sim.own_code import function, is_reference
from dlion_sim.scenario import CORE_FLOPS, Scenario
from dlion_sim.streams import stream_seed


@contextmanager
def of_workload() -> Iterator[None]:
    """Within the block, faults lie in the scenario's workload, unless they lie in a file of their own."""
    try:
        yield
    except InputError as error:
        raise (error if error.file else error.below("workload")) from error.__cause__


def dataset_of(scenario: Scenario) -> Dataset:
    """What is learned from. Raises InputError where it cannot be."""
    name = scenario.workload.dataset
    own = _own(name, "workload.dataset")
    with of_workload():
        return own_dataset(name, own) if own else load(name)


def model_of(scenario: Scenario, dataset: Dataset) -> nn.Module:
    """What is trained, with everybody's initial parameters. Raises InputError where it cannot be."""
    name, seed = scenario.workload.model, stream_seed(scenario.seed, "model")
    own = _own(name, "workload.model", most=1)
    with of_workload():
        return own_model(name, own, dataset, seed) if own else model_for(name, dataset, seed)


def _own(name: str, path: str, most: int = 0) -> Callable[..., object] | None:
    """The user's function of that name, if it is one."""
    if not is_reference(name):
        return None
    with seeded(0):  # A module may draw random numbers when it is imported.
        return function(name, path, most)


def core_seconds_per_sample(scenario: Scenario, model: nn.Module, dataset: Dataset) -> float:
    """What one sample costs on one core: as the scenario says, else what the model's FLOPs take."""
    beta = scenario.workload.compute_time.beta
    return training_flops(model, dataset.sample) / CORE_FLOPS if beta is None else beta


def check_target(scenario: Scenario, dataset: Dataset) -> None:
    """Raise InputError for a target that the task's metric cannot reach."""
    metric = dataset.task.metric
    if scenario.target_accuracy is not None and metric != ACCURACY:
        problem = f"the metric of '{scenario.workload.dataset}' is {metric.name}"
        raise InputError(problem, path="target_accuracy", allowed=f"target, which is of the {metric.name}")
    if scenario.target is not None and metric == ACCURACY and not 0 < scenario.target <= 1:
        raise InputError(f"no accuracy is {scenario.target:g}", path="target", allowed="more than 0, up to 1")
