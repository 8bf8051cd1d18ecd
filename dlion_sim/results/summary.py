"""The content of a run's summary: its keys and the types of their values, as they are checked."""

from __future__ import annotations

from typing import Annotated, Generic, Literal, Required, TypedDict, TypeVar

import msgspec

from dlion_sim.results.cost import Cost
from dlion_sim.results.json_document import MOST, Fraction, Measured, Seconds, ShortText, TargetText
from dlion_sim.results.manifest import CostAs, Count, EvaluatedOn, Lateness

Status = Literal["completed", "interrupted", "failed"]

T = TypeVar("T")


class Delays(TypedDict):
    """How long something took (s); None if it never happened."""

    mean: Seconds | None
    most: Seconds | None


class Messages(TypedDict):
    """Messages by outcome: all that were sent are delivered, cut, refused or, at the run's end, in transit."""

    sent: Count
    delivered: Count
    cut: Count
    """Lost with a participant or link, in a queue or in transit."""
    refused: Count
    """Sent to a lost participant before the sender detected it."""
    under_way: Count


class Availability(TypedDict, total=False):
    """Availability of the participants, and the cost of outages."""

    up: list[Fraction]
    """The share of the run in which each worker's process ran."""
    computed: Count
    """Samples, with those of iterations that were lost with their worker."""
    useful: Count
    """Of these, those in a worker's state: not of lost iterations, nor from before all state was lost."""
    lost_seconds: Seconds
    """Computed in lost iterations."""
    state_bytes: Count
    """Transferred to joining workers."""
    to_notice: Delays
    """From a loss until a peer detects it."""
    to_join: Delays
    """From the start of a process until it is a member."""
    messages: Messages
    """Of simulations."""


class PerWorker(TypedDict, total=False):
    """A count of each worker, and their mean."""

    mean: Required[Seconds | None]
    per_worker: list[Count]


class Last(TypedDict, Generic[T], total=False):
    """A metric of the workers at one evaluation; None for a worker that was not evaluated."""

    mean: Required[T | None]
    std: T | None
    per_worker: list[T | None]


class Final(TypedDict, Generic[T]):
    """The mean over the last evaluations, and their number."""

    mean: T | None
    evaluations: Count


class Completion(TypedDict):
    """Time from a message's first byte until its receiver had all that it waited for."""

    mean: Seconds | None
    p50: Seconds | None
    p99: Seconds | None


class Transported(TypedDict):
    """Messages that were sent in packets: shares of their bytes, and completion times.

    `lost` bytes were not delivered; `saved` of them were never sent.
    """

    lost: Fraction
    resent: Seconds
    saved: Fraction
    messages: Count
    """Data messages, which `completion` is of."""
    completion: Completion


class Streamed(TypedDict):
    """Results on a stream; None if there is no such value."""

    scored: Count
    """Samples that were tested on arrival, before training on them."""
    online_accuracy: Fraction | None
    """Of these."""
    forgetting: Annotated[float, msgspec.Meta(ge=-1.0, le=1.0)] | None
    """The best former accuracy of a class minus the last one, mean over workers and the classes that have arrived
    (Chaudhry et al., ECCV 2018)."""
    adaptation: dict[TargetText, Seconds | None]
    """By class that was absent at the start: time from its first arrival until the workers' mean accuracy on it reached
    nine tenths of its final value."""


class Summary(TypedDict, total=False):
    """The known keys of a summary, which may have more.

    Older runs lack some. If the task's metric is not accuracy, keys that end with `metric` replace those that end with
    `accuracy`.
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
    """Bytes between micro-clouds."""
    bytes_sent: Count
    """Over all links."""
    transport: Transported
    availability: Availability
    stream: Streamed
    dropped_samples: Annotated[float, msgspec.Meta(ge=0.0, le=MOST)]
    """Of the `samples`, those of which what was learned reached no other worker, by exchanges that tell."""
    cost: Cost
    cost_as: CostAs
    iterations: PerWorker
    exchanges: PerWorker
    evaluated_on: EvaluatedOn
    accuracy: Last[Fraction]
    """At the last evaluation."""
    full_accuracy: Last[Fraction]
    """At the end, on all samples: evaluations may be on the first ones only."""
    final_accuracy: Final[Fraction]
    time_to_accuracy: dict[TargetText, Seconds | None]
    not_before: dict[TargetText, Seconds | None]
    """By target that was reached: the time of the evaluation before that of `time_to_...`, if there was one."""
    metric: Last[Measured]
    full_metric: Last[Measured]
    final_metric: Final[Measured]
    time_to_metric: dict[TargetText, Seconds | None]
    late: Lateness | None
    diverged: list[Count]
    spent: dict[ShortText, list[Seconds]]
