"""What is learned: data, model, optimizer, and what a computation costs."""

from __future__ import annotations

import math
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator
from pydantic_core.core_schema import ValidationInfo

from dlion_sim.scenario.faults import RuleError
from dlion_sim.scenario.input_pipeline import Input
from dlion_sim.scenario.model import Model
from dlion_sim.scenario.parametrised import DatasetSpec, Lora, ModelSpec
from dlion_sim.scenario.partition import Iid, Partition, Shared
from dlion_sim.scenario.stream import Stream
from dlion_sim.scenario.units import Duration, Flops, Parameters


class ConstantRate(Model):
    """The learning rate stays as it is."""

    kind: Literal["constant"] = "constant"

    def factor(self, step: int) -> float:
        """The part of the learning rate that is left after `step` steps."""
        return 1.0


class StepDecay(Model):
    """The learning rate falls by a factor again and again."""

    kind: Literal["step"] = "step"
    every: Annotated[int, Field(ge=1)]
    """Steps between two falls."""
    by: Annotated[float, Field(gt=0, le=1)] = 0.1
    """The factor of each fall."""

    def factor(self, step: int) -> float:
        """The part of the learning rate that is left after `step` steps."""
        return self.by ** (step // self.every)


class CosineDecay(Model):
    """The learning rate falls along half a cosine (Loshchilov and Hutter, ICLR 2017, without restarts)."""

    kind: Literal["cosine"] = "cosine"
    steps: Annotated[int, Field(ge=1)]
    """Steps until it has fallen; from then on it stays."""
    end: Annotated[float, Field(ge=0, le=1)] = 0.0
    """The part of the learning rate that is left then."""

    def factor(self, step: int) -> float:
        """The part of the learning rate that is left after `step` steps."""
        return self.end + (1 - self.end) * (1 + math.cos(math.pi * min(1.0, step / self.steps))) / 2


class Optimizer(Model):
    """How a worker's own gradient and those that it receives change its weights."""

    kind: Literal["sgd", "adam", "adamw"] = "sgd"
    """The rule by which gradients become a step."""
    learning_rate: Annotated[float, Field(gt=0, le=1000)] = 0.05
    """Step size."""
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Momentum of sgd; adam and adamw have their own."""
    weight_decay: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """The part of the weights that sgd adds to the gradient, or that adamw, times the learning rate, takes off the
    weights; adam has none."""
    clip_norm: Annotated[float, Field(gt=0)] | None = None
    """The length of the gradient of a step, at most: a longer one is shortened to it. A parameter server sees that of
    its part. None: as long as it is."""
    warmup: Annotated[int, Field(ge=0)] = 0
    """Steps over which the learning rate rises evenly, before its schedule begins."""
    schedule: Annotated[ConstantRate | StepDecay | CosineDecay, Field(discriminator="kind")] = ConstantRate()
    """How the learning rate falls with the steps of whoever takes them: a worker, or a parameter server."""

    @field_validator("momentum")
    @classmethod
    def _of_sgd_only(cls, momentum: float, info: ValidationInfo) -> float:
        if momentum and info.data.get("kind") != "sgd":
            raise ValueError("momentum is for sgd; adam and adamw have their own")
        return momentum

    @field_validator("weight_decay")
    @classmethod
    def _not_of_adam(cls, weight_decay: float, info: ValidationInfo) -> float:
        if weight_decay and info.data.get("kind") == "adam":
            raise ValueError("adam has no weight decay; with one it is adamw")
        return weight_decay

    def factor(self, step: int) -> float:
        """The part of the learning rate that the step after `step` others has."""
        if step < self.warmup:
            return (step + 1) / (self.warmup + 1)
        return self.schedule.factor(step - self.warmup)


_LEAST_COST = 1e-6
"""Seconds of an iteration of one sample on one core."""


class ComputeTime(Model):
    """Time of an iteration with b samples on a machine with c cores: T(b) = alpha + beta * b / c."""

    alpha: Duration = 0.01
    """Fixed cost of an iteration."""
    beta: Duration | None = None
    """Cost of one sample on one core. By default it is what the FLOPs of the model, or of `cost_as`, take at 1.9
    GFLOP/s, a core's speed by TF.AKO's published runs."""

    @model_validator(mode="after")
    def _takes_time(self) -> Self:
        if self.beta is not None and self.alpha + self.beta < _LEAST_COST:
            raise ValueError("alpha and beta are both next to nothing: time would stand still; at least 1 us together")
        return self


class CostAs(Model):
    """A larger model that the one which learns stands for: time and bytes are the larger one's. In simulations only."""

    parameters: Annotated[Parameters, Field(gt=0)]
    """That the larger one trains: each entry of what the smaller one sends is charged as so many as there are for one
    of its parameters."""
    flops: Annotated[Flops, Field(gt=0)] | None = None
    """Floating-point operations of forward and backward pass for one sample. None: as many more than the smaller
    one's as it has parameters more. What an iteration costs is `compute_time`'s where that has a beta."""


class Workload(Model):
    """What is learned."""

    dataset: DatasetSpec
    """Name of the data set, e.g. digits or cifar10; or package.module:name, a function of your own that returns one."""
    model: ModelSpec = "mlp"
    """Name of the model, e.g. mlp or cipher; or package.module:name, a function of your own that returns one."""
    lora: Lora | None = None
    """Low-rank additions that are trained in place of the model itself. None: all of it is."""
    initial_parameters: Literal["same", "own"] = "same"
    """What workers begin with: all with the same parameters, or each with its own draw, as in TF.AKO's code. Who
    fetches parameters from a server goes on with those."""
    optimizer: Optimizer = Optimizer()
    """How gradients change the weights."""
    batch_size: Annotated[int, Field(ge=1)] = 32
    """Local batch size, in samples, that every worker begins with."""
    partition: Partition = Iid()
    """Which samples lie at which worker; a plain name is short for {kind: name}."""
    stream: Stream | None = None
    """How samples come to the workers. None: all are there from the start."""
    validation: Annotated[float, Field(ge=0, le=0.5)] = 0.0
    """The part of the training samples, of each class alike where there are classes, that nobody trains on: if any, all
    evaluations are on these, and the run never sees the test set. Whatever is chosen by how well it does, such as a
    learning rate, needs them."""
    evaluate_every: Annotated[Duration, Field(ge=0.001)] = 20.0
    """Virtual time between evaluations, which take none. They are on the test set, or else on validation samples."""
    evaluation_samples: Annotated[int, Field(ge=1)] | None = None
    """How many samples, the first ones, every evaluation is on, and so whether a target is reached; by default all.
    Where there are more, the run ends with one evaluation on all, the summary's `full_accuracy` (`full_metric`)."""
    compute_time: ComputeTime = ComputeTime()
    """How long an iteration takes."""
    input: Input | None = None
    """What feeds the machines. None: their samples are there whenever they are needed."""
    cost_as: CostAs | None = None
    """A larger model whose time and bytes are charged, while this one learns. None: its own are."""
    kernels: Literal["fast", "torch"] = "fast"
    """What computes gradients and evaluations on a CPU. fast: compiled kernels for the layers that they suit, within
    rounding of PyTorch's, and PyTorch's for all where they cannot be compiled; torch: PyTorch's for all."""

    @model_validator(mode="after")
    def _tests_before_it_trains(self) -> Self:
        if self.stream is not None and isinstance(self.partition, Shared):
            problem = "of a stream, no sample may have been trained on elsewhere before it comes and is tested"
            raise RuleError(problem, allowed="iid, dirichlet, label_shards, owners", at=("partition",))
        return self

    @property
    def evaluated_on(self) -> Literal["test", "validation"]:
        """The set that all evaluations are on."""
        return "validation" if self.validation else "test"
