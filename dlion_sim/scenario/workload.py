"""What is learned: data, model, optimizer, and the cost of computations and input."""

from __future__ import annotations

import math
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator
from pydantic_core.core_schema import ValidationInfo

from dlion_sim.scenario.faults import RuleError
from dlion_sim.scenario.model import Model
from dlion_sim.scenario.parametrised import DatasetSpec, Lora, ModelSpec
from dlion_sim.scenario.partition import Iid, Partition, Shared
from dlion_sim.scenario.stream import Stream
from dlion_sim.scenario.units import Bandwidth, Duration, Flops, Parameters, Size

_BITS = 8


class Input(Model):
    """Input pipeline of each machine: the next batch is read from disk and preprocessed during the current iteration; a
    computation waits for the remainder (as in DS-Analyzer: Mohan et al., VLDB'21)."""

    prep_rate: Annotated[float, Field(gt=0)] | None = None
    """Samples preprocessed (decoded, augmented) per second. By default unlimited."""
    disk: Annotated[Bandwidth, Field(gt=0)] | None = None
    """Read bandwidth of the disk, e.g. 525 MB/s. By default unlimited."""
    sample_bytes: Annotated[Size, Field(gt=0)] | None = None
    """Size of a sample on disk, e.g. 110 kB."""
    cache: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of samples cached in memory after the first epoch."""

    @model_validator(mode="after")
    def _feeds(self) -> Self:
        if self.prep_rate is None and self.disk is None:
            raise RuleError("has no rate of input", allowed="prep_rate, disk, or both")
        if (self.disk is None) != (self.sample_bytes is None):
            raise RuleError("disk and sample_bytes go together", allowed="both or neither")
        return self

    def preparing(self, samples: int) -> float:
        """Time to preprocess a number of samples (s)."""
        return samples / self.prep_rate if self.prep_rate else 0.0

    def reading(self, samples: int, taken: int, shard_samples: int) -> float:
        """Time (s) to read a number of samples after `taken` others of its shard: in the first epoch, all from disk."""
        if self.disk is None or self.sample_bytes is None:
            return 0.0
        new = min(max(shard_samples - taken, 0), samples)
        return _BITS * (new + (1 - self.cache) * (samples - new)) * self.sample_bytes / self.disk


class ConstantRate(Model):
    """A constant learning rate."""

    kind: Literal["constant"] = "constant"

    def factor(self, step: int) -> float:
        """Factor on the learning rate after `step` steps."""
        return 1.0


class StepDecay(Model):
    """The learning rate is multiplied by a factor at regular intervals."""

    kind: Literal["step"] = "step"
    every: Annotated[int, Field(ge=1)]
    """Steps between two decays."""
    by: Annotated[float, Field(gt=0, le=1)] = 0.1
    """Factor of each decay."""

    def factor(self, step: int) -> float:
        """Factor on the learning rate after `step` steps."""
        return self.by ** (step // self.every)


class CosineDecay(Model):
    """Cosine decay (Loshchilov and Hutter, ICLR 2017, without restarts)."""

    kind: Literal["cosine"] = "cosine"
    steps: Annotated[int, Field(ge=1)]
    """Steps of the decay; constant afterwards."""
    end: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Final factor on the learning rate."""

    def factor(self, step: int) -> float:
        """Factor on the learning rate after `step` steps."""
        return self.end + (1 - self.end) * (1 + math.cos(math.pi * min(1.0, step / self.steps))) / 2


class Optimizer(Model):
    """The optimizer that applies own and received gradients."""

    kind: Literal["sgd", "adam", "adamw", "muon"] = "sgd"
    """Update rule. muon: for hidden matrices and those of LoRA, with adamw for the rest and at parameter servers."""
    learning_rate: Annotated[float, Field(gt=0, le=1000)] = 0.05
    """Learning rate."""
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Momentum of sgd; the others have their own."""
    weight_decay: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Weight decay: L2 for sgd, decoupled for adamw and muon; not for adam."""
    clip_norm: Annotated[float, Field(gt=0)] | None = None
    """Maximum norm of a step's gradient; at a parameter server, of its part. By default none."""
    warmup: Annotated[int, Field(ge=0)] = 0
    """Steps of linear warm-up before the schedule."""
    schedule: Annotated[ConstantRate | StepDecay | CosineDecay, Field(discriminator="kind")] = ConstantRate()
    """Learning rate schedule over the steps of a worker, or of a parameter server."""

    @field_validator("momentum")
    @classmethod
    def _of_sgd_only(cls, momentum: float, info: ValidationInfo) -> float:
        if momentum and info.data.get("kind") != "sgd":
            raise ValueError("momentum is for sgd; the others have their own")
        return momentum

    @field_validator("weight_decay")
    @classmethod
    def _not_of_adam(cls, weight_decay: float, info: ValidationInfo) -> float:
        if weight_decay and info.data.get("kind") == "adam":
            raise ValueError("adam has no weight decay; with one it is adamw")
        return weight_decay

    def factor(self, step: int) -> float:
        """Factor on the learning rate of the step after `step` others."""
        if step < self.warmup:
            return (step + 1) / (self.warmup + 1)
        return self.schedule.factor(step - self.warmup)


_LEAST_COST = 1e-6
"""Minimum time (s) of an iteration of one sample on one core."""


class ComputeTime(Model):
    """Compute time of an iteration with b samples on c cores: T(b) = alpha + beta * b / c; and time of a message."""

    alpha: Duration = 0.01
    """Fixed cost of an iteration."""
    beta: Duration | None = None
    """Time of one sample on one core. By default the FLOPs of the model (or `cost_as`) at 1.9 GFLOP/s (TF.AKO's
    published runs)."""
    per_message: Duration = 0.0
    """Time that a participant takes for each message from another machine, one after another, beside its gradients."""

    @model_validator(mode="after")
    def _takes_time(self) -> Self:
        if self.beta is not None and self.alpha + self.beta < _LEAST_COST:
            raise ValueError("alpha and beta must be at least 1 us together")
        return self


class CostAs(Model):
    """A larger model whose compute time and bytes are charged, in simulations only."""

    parameters: Annotated[Parameters, Field(gt=0)]
    """Its parameters: bytes are scaled by their ratio to the trained model's, and PowerSGD's, as if layers were wider,
    by its square root."""
    flops: Annotated[Flops, Field(gt=0)] | None = None
    """FLOPs of forward and backward pass for one sample; by default scaled like the parameters. No effect with a
    `compute_time.beta`."""


class Workload(Model):
    """What the workers learn, and what computations cost."""

    dataset: DatasetSpec
    """Data set, e.g. digits or cifar10; or a function of your own, package.module:name."""
    model: ModelSpec = "mlp"
    """Model, e.g. mlp or cipher; or a function of your own, package.module:name."""
    lora: Lora | None = None
    """Low-rank adaptation (LoRA) instead of training all parameters."""
    initial_parameters: Literal["same", "own"] = "same"
    """Initial parameters: the same at all workers, or drawn by each, as in TF.AKO's code."""
    optimizer: Optimizer = Optimizer()
    """The optimizer."""
    batch_size: Annotated[int, Field(ge=1)] = 32
    """Initial local batch size of every worker, in samples."""
    partition: Partition = Iid()
    """Which samples are stored at which worker."""
    stream: Stream | None = None
    """Samples that arrive during training. By default all are there at the start."""
    validation: Annotated[float, Field(ge=0, le=0.5)] = 0.0
    """Share of the training samples that is held out, stratified by class, and replaces the test set. Needed to choose
    anything, such as a learning rate."""
    evaluate_every: Annotated[Duration, Field(ge=0.001)] = 20.0
    """Virtual time between evaluations, which take none."""
    evaluation_samples: Annotated[int, Field(ge=1)] | None = None
    """Number of (first) samples for evaluations and targets; by default all. With fewer, the summary has
    `full_accuracy` (`full_metric`), on all at the end."""
    compute_time: ComputeTime = ComputeTime()
    """Compute time of iterations."""
    input: Input | None = None
    """Input pipeline. By default it takes no time."""
    cost_as: CostAs | None = None
    """A larger model whose time and bytes are charged instead of the trained model's."""
    kernels: Literal["fast", "torch"] = "fast"
    """CPU kernels: compiled ones for supported layers, equal to PyTorch's up to rounding; or PyTorch's only."""

    @model_validator(mode="after")
    def _tests_before_it_trains(self) -> Self:
        if self.stream is not None and isinstance(self.partition, Shared):
            problem = "with a stream, samples must not be trained on at other workers before they are tested"
            raise RuleError(problem, allowed="iid, dirichlet, label_shards, owners", at=("partition",))
        return self

    @property
    def evaluated_on(self) -> Literal["test", "validation"]:
        """The set of samples that evaluations use."""
        return "validation" if self.validation else "test"
