"""The tables of a run: a class for each, whose fields are the columns with their types, units and ranges.

In a run folder, each column of participants' numbers, such as `worker`, is accompanied by `worker_name` and
`worker_cloud`, the micro-cloud. Columns that are `None` are null in the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import pyarrow as pa

from dlion_sim.results.json_document import MOST


@dataclass(frozen=True)
class Column:
    """The type and unit of a column; the range of its numbers or its `texts`, where these are restricted."""

    type: pa.DataType
    unit: str
    least: float | None = None
    most: float = MOST
    texts: tuple[str, ...] = ()


INDEX = "index"
"""The unit of the numbers of workers and parameter servers."""
INDEX_MOST = 2**31 - 1
_TEXT = pa.dictionary(pa.int32(), pa.string())

MetricsKind = Literal["iteration", "evaluation", "full_evaluation", "profile", "unfinished", "cut", "arrivals"]
MembershipEvent = Literal["down", "noticed", "left", "up", "lost", "found", "joined", "begins_anew"]

Seconds = Annotated[float, Column(pa.float64(), "s", 0)]
Fraction = Annotated[float, Column(pa.float64(), "fraction", 0, 1 + 1e-9)]
Accuracy = Annotated[float, Column(pa.float64(), "fraction", 0, 1)]
Index = Annotated[int, Column(pa.int32(), INDEX, 0, INDEX_MOST)]
Iterations = Annotated[int, Column(pa.int64(), "iterations", 0)]
Samples = Annotated[int, Column(pa.int32(), "samples", 0)]
Bytes = Annotated[int, Column(pa.int64(), "bytes", 0)]
Packets = Annotated[int, Column(pa.int64(), "packets", 0)]
MessageKind = Annotated[str, Column(_TEXT, "kind of message")]


def _one_of(texts: Any) -> Column:
    return Column(_TEXT, " | ".join(get_args(texts)), texts=get_args(texts))


class MetricsRow(NamedTuple):
    """A worker's iteration, evaluation or profiling.

    Kinds: "profile" is a machine timed before training; "unfinished" an iteration that the end of the run interrupted,
    "cut" one that the loss of its worker did; "arrivals" the samples of a stream since the worker's last iteration
    began, tested before training on them; "full_evaluation" one on all samples at the end of a run whose evaluations
    are on the first `evaluation_samples` of the workload.
    """

    virtual_time: Seconds
    wall_time: Seconds
    """Since the start of the run."""
    worker: Index
    """Of evaluations of a server's parameters: the server, with its rounds as iterations."""
    kind: Annotated[MetricsKind, _one_of(MetricsKind)]
    iteration: Iterations
    loss: Annotated[float, Column(pa.float64(), "nats")] | None = None
    """Of an iteration's training batch, or of the arrivals. Of evaluations: of the set that the manifest's
    `evaluated_on` names, for a stream as distributed at that time. May be anything: a run may diverge."""
    accuracy: Accuracy | None = None
    """Of evaluations and arrivals."""
    batch_size: Samples | None = None
    """The worker's (LBS), of iterations; of arrivals, the number of samples."""
    global_batch_size: Samples | None = None
    """GBS."""
    staleness: Annotated[float, Column(pa.float64(), "iterations", -MOST)] | None = None
    """Mean of the updates applied, negative if they are ahead; None without any."""
    applied: Annotated[int, Column(pa.int32(), "remote updates", 0)] | None = None
    merged: Annotated[int, Column(pa.int32(), "weights merged by knowledge transfer", 0)] | None = None
    compute_seconds: Seconds | None = None
    """Virtual, as the next."""
    wait_seconds: Seconds | None = None
    waited_for: Index | None = None
    """The sender of the message that ended the wait, or that is still missing; None without a wait."""
    wait_reason: Annotated[str, Column(_TEXT, "kind of message | queue | lost")] | None = None
    """That message's kind; "queue" if a message to that peer had to leave first, "lost" if the peer's loss ended it."""
    metric: Annotated[float, Column(pa.float64(), "the metric's")] | None = None
    """Of evaluations: what the manifest's `metric` names, unless that is accuracy."""
    prep_seconds: Seconds | None = None
    """Of `compute_seconds`, waiting for samples to be prepared, and read; None without an input pipeline."""
    fetch_seconds: Seconds | None = None
    dropped: Annotated[float, Column(pa.float64(), "samples", 0)] | None = None
    """Of which what was learned here will reach no other worker; None if the exchange does not tell."""

    @property
    def score(self) -> float | None:
        """The metric of the run's task at an evaluation, accuracy or another."""
        return self.accuracy if self.metric is None else self.metric


class LinksRow(NamedTuple):
    """Traffic of a directed link in an interval."""

    virtual_time: Seconds
    """End of the interval."""
    sender: Index
    receiver: Index
    bytes: Bytes
    """Carried in the interval, also of messages that are still in transit."""
    messages: Annotated[int, Column(pa.int32(), "messages", 0)]
    """Whose last byte was sent in the interval, as the next."""
    gradients: Annotated[int, Column(pa.int32(), "gradient messages", 0)]
    n_percent: Annotated[float, Column(pa.float64(), "percent", 0, 100)] | None = None
    """Mean N of the Max-N messages; None without any."""


class TransfersRow(NamedTuple):
    """A message from its first byte to its last."""

    begin: Seconds
    """The first byte is sent."""
    end: Seconds | None
    """The last byte is sent; None if the run or the connection ended before or, in packets, before the sender knew that
    all had arrived: then it may be `delivered`."""
    sender: Index
    receiver: Index
    channel: Annotated[str, Column(_TEXT, "control | data | weights")]
    kind: MessageKind
    bytes: Bytes
    """Carried: all, unless it was still in transit."""
    lost_bytes: Bytes | None = None
    """Not delivered; None, as the next three, unless it was sent in packets."""
    resent_bytes: Bytes | None = None
    saved_bytes: Bytes | None = None
    """Never sent, as the receiver had enough."""
    delivered: Seconds | None = None
    """The receiver had all that it waited for."""

    @property
    def completed(self) -> float | None:
        """When the receiver had it (s), if known: when it was sent, unless it was sent in packets."""
        return self.end if self.delivered is None else self.delivered


class PartsRow(NamedTuple):
    """The packets of a message that have one variable's larger or smaller entries."""

    begin: Seconds
    """Of the message, as in TRANSFERS, and so are the next three."""
    sender: Index
    receiver: Index
    kind: MessageKind
    stage: Annotated[str, Column(_TEXT, "push | pull | reduce | gather | mix")] | None
    variable: Annotated[int, Column(pa.int32(), "number in the model", 0, INDEX_MOST)]
    large: Annotated[bool, Column(pa.bool_(), "whether its packets have the larger entries")]
    bytes: Bytes
    lost_bytes: Bytes
    seconds: Seconds | None
    """From `begin` to the last packet's arrival; None if none arrived, or if unknown."""


class QueuesRow(NamedTuple):
    """The queue of a link in an interval."""

    virtual_time: Seconds
    """End of the interval."""
    port: Annotated[str, Column(_TEXT, "link that it sends on")]
    bytes: Bytes
    """Sent in the interval, with headers."""
    mean_queued: Annotated[float, Column(pa.float64(), "bytes", 0)]
    most_queued: Bytes
    dropped: Packets
    marked: Packets


class MembershipRow(NamedTuple):
    """A change of a participant's availability or membership.

    Events: its process is "down", with the loss of its state; an announced end is "noticed"; it has "left" in an
    orderly way; its process is "up" again; a peer has "lost" or "found" it; it has "joined" with the state, or
    "begins_anew" without, as no participant had any left.
    """

    virtual_time: Seconds
    participant: Index
    incarnation: Annotated[int, Column(pa.int32(), "returns", 0, INDEX_MOST)]
    what: Annotated[MembershipEvent, _one_of(MembershipEvent)]
    peer: Index | None = None
    """The peer that has lost or found it, or its sponsor."""
    seconds: Seconds | None = None
    """From down or left to lost, or from up to joined."""
    bytes: Bytes | None = None
    """Of the state transferred."""
    iteration: Iterations | None = None
    """Its first one as a member."""


class ClassesRow(NamedTuple):
    """A worker's accuracy on one class at an evaluation."""

    virtual_time: Seconds
    worker: Index
    label: Annotated[int, Column(pa.int32(), "number of the class", 0, INDEX_MOST)]
    share: Fraction
    """Of the samples that arrive at that time."""
    samples: Annotated[int, Column(pa.int64(), "samples", 0)]
    """Of the class, that it was evaluated on."""
    accuracy: Accuracy


Row = MetricsRow | LinksRow | TransfersRow | PartsRow | QueuesRow | MembershipRow | ClassesRow
R = TypeVar("R", bound=Row)


@dataclass(frozen=True)
class Table(Generic[R]):
    """A table: its file in the run folder and the class of its rows. An `optional` one has no file without rows."""

    file: str
    row: type[R]
    optional: bool = False

    @cached_property
    def columns(self) -> Mapping[str, Column]:
        """By name, in the order of the file."""
        return {name: _column(hint)[0] for name, hint in get_type_hints(self.row, include_extras=True).items()}

    @cached_property
    def schema(self) -> pa.Schema:
        """Types, nullability and units, which stand in each column's Parquet metadata."""
        hints = get_type_hints(self.row, include_extras=True)
        return pa.schema(
            pa.field(name, column.type, nullable=nullable, metadata={"unit": column.unit})
            for name, (column, nullable) in zip(hints, map(_column, hints.values()), strict=True)
        )


def _column(hint: Any) -> tuple[Column, bool]:
    """The column, and whether it may be null, of a field's type: `Annotated[..., Column]`, or that and None."""
    if nullable := get_origin(hint) is not Annotated:
        hint, _ = get_args(hint)
    return hint.__metadata__[0], nullable


METRICS = Table("metrics.parquet", MetricsRow)
LINKS = Table("links.parquet", LinksRow)
TRANSFERS = Table("transfers.parquet", TransfersRow)
PARTS = Table("parts.parquet", PartsRow, optional=True)
QUEUES = Table("queues.parquet", QueuesRow, optional=True)
MEMBERSHIP = Table("membership.parquet", MembershipRow, optional=True)
CLASSES = Table("classes.parquet", ClassesRow, optional=True)
TABLES: tuple[Table[Any], ...] = (METRICS, LINKS, TRANSFERS, PARTS, QUEUES, MEMBERSHIP, CLASSES)

EVALUATIONS = ("evaluation", "full_evaluation")
"""The kinds of rows of METRICS whose `worker` may be a server."""
TESTS = (*EVALUATIONS, "arrivals")
"""The kinds of rows of METRICS that measure a model; all others measure time."""
WALL_CLOCK_COLUMNS = ("wall_time",)
"""The columns of METRICS that differ between two runs of one scenario and seed."""
