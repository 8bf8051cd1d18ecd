"""What is read of a run's summary: what it tells, and what that must be where it is there."""

from __future__ import annotations

from typing import Annotated, Generic, Literal, Required, TypedDict, TypeVar

import msgspec

from dlion_sim.results.availability import Availability
from dlion_sim.results.cost import Cost
from dlion_sim.results.json_document import Fraction, Measured, Seconds, ShortText, TargetText
from dlion_sim.results.manifest import CostAs, Count, EvaluatedOn, Lateness

Status = Literal["completed", "interrupted", "failed"]

T = TypeVar("T")


class PerWorker(TypedDict, total=False):
    """A count of each worker, and their mean."""

    mean: Required[Seconds | None]
    per_worker: list[Count]


class Last(TypedDict, Generic[T], total=False):
    """A metric of the workers at one evaluation; None of who was not evaluated."""

    mean: Required[T | None]
    std: T | None
    per_worker: list[T | None]


class Final(TypedDict, Generic[T]):
    """The mean over the last evaluations, and how many these are."""

    mean: T | None
    evaluations: Count


class Completion(TypedDict):
    """From a message's first byte until its receiver had all of it that it waited for."""

    mean: Seconds | None
    p50: Seconds | None
    p99: Seconds | None


class Transported(TypedDict):
    """What became of the messages that were sent in packets: shares of their bytes, and how long it took.

    `lost` is what receivers did without, and of that `saved` what was never sent.
    """

    lost: Fraction
    resent: Seconds
    saved: Fraction
    messages: Count
    """Of data, of which `completion` tells."""
    completion: Completion


class Streamed(TypedDict):
    """How workers did on samples that came while they learned; None of what there is none of."""

    scored: Count
    """Samples that were tested as they came, before they were trained on."""
    online_accuracy: Fraction | None
    """Of these."""
    forgetting: Annotated[float, msgspec.Meta(ge=-1.0, le=1.0)] | None
    """The best former accuracy of a class less the last one, the mean over the classes that have come, and workers
    (Chaudhry et al., ECCV 2018)."""
    adaptation: dict[TargetText, Seconds | None]
    """By class that was not there from the start: from when it was until the workers' mean accuracy at it had come to
    nine tenths of its final level."""


class Summary(TypedDict, total=False):
    """What is read of a summary, and what that must be where it is there; it may tell more.

    What only newer ones tell is asked for with `get`. Of a task whose metric is not accuracy, the keys that end with
    `metric` are there in place of those that end with `accuracy`.
    """

    scenario: ShortText
    system: ShortText
    system_label: ShortText
    seed: Count
    status: Status
    stopped_by: str
    virtual_seconds: Seconds
    wall_seconds: Seconds
    evaluation_share: Seconds | None
    samples: Count
    samples_per_wall_second: Seconds | None
    wan_bytes: Count
    """That went from one micro-cloud to another."""
    bytes_sent: Count
    """Over all links."""
    transport: Transported
    availability: Availability
    stream: Streamed
    cost: Cost
    cost_as: CostAs
    iterations: PerWorker
    exchanges: PerWorker
    evaluated_on: EvaluatedOn
    accuracy: Last[Fraction]
    """At the last evaluation."""
    full_accuracy: Last[Fraction]
    """At the end, on all samples: evaluations, and all that follows from them, may be on the first ones only."""
    final_accuracy: Final[Fraction]
    time_to_accuracy: dict[TargetText, Seconds | None]
    not_before: dict[TargetText, Seconds | None]
    """By target that was reached: the last evaluation without it before that of `time_to_...`, if there was one."""
    metric: Last[Measured]
    full_metric: Last[Measured]
    final_metric: Final[Measured]
    time_to_metric: dict[TargetText, Seconds | None]
    late: Lateness | None
    diverged: list[Count]
    spent: dict[ShortText, list[Seconds]]
