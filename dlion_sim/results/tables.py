"""The tables of a run: their columns, types and units. A unit also stands in its column's Parquet metadata.

In a run folder each column of participants' numbers, `worker` for one, has two more that name them: `worker_name` and
`worker_cloud`, the micro-cloud.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import pyarrow as pa

Kind = Literal["iteration", "evaluation", "full_evaluation", "profile", "unfinished", "cut", "arrivals"]


class MetricsRow(NamedTuple):
    """What one worker has done, or how good it was; the column notes stand at `METRICS`."""

    virtual_time: float
    wall_time: float
    worker: int
    kind: Kind
    iteration: int
    loss: float | None = None
    accuracy: float | None = None
    batch_size: int | None = None
    global_batch_size: int | None = None
    staleness: float | None = None
    applied: int | None = None
    merged: int | None = None
    compute_seconds: float | None = None
    wait_seconds: float | None = None
    waited_for: int | None = None
    wait_reason: str | None = None
    metric: float | None = None
    prep_seconds: float | None = None
    fetch_seconds: float | None = None

    @property
    def score(self) -> float | None:
        """The metric of the run's task at an evaluation, be it accuracy or another."""
        return self.accuracy if self.metric is None else self.metric


class LinksRow(NamedTuple):
    """What one directed link carried in one interval; the column notes stand at `LINKS`."""

    virtual_time: float
    sender: int
    receiver: int
    bytes: int
    messages: int
    gradients: int
    n_percent: float | None = None


class TransfersRow(NamedTuple):
    """One message from its first byte to its last; the column notes stand at `TRANSFERS`."""

    begin: float
    end: float | None
    sender: int
    receiver: int
    channel: str
    kind: str
    bytes: int
    lost_bytes: int | None = None
    resent_bytes: int | None = None
    saved_bytes: int | None = None
    delivered: float | None = None

    @property
    def completed(self) -> float | None:
        """When the receiver had it, as far as that is known (s): when it was sent, unless it went in packets."""
        return self.end if self.delivered is None else self.delivered


class PartsRow(NamedTuple):
    """Those packets of a message that are of one variable, and large or small; the column notes stand at `PARTS`."""

    begin: float
    sender: int
    receiver: int
    kind: str
    stage: str | None
    variable: int
    large: bool
    bytes: int
    lost_bytes: int
    seconds: float | None


class QueuesRow(NamedTuple):
    """What waited for one link in one interval; the column notes stand at `QUEUES`."""

    virtual_time: float
    port: str
    bytes: int
    mean_queued: float
    most_queued: int
    dropped: int
    marked: int


What = Literal["down", "up", "noticed", "left", "lost", "found", "joined", "begins_anew"]


class MembershipRow(NamedTuple):
    """What became of one participant's presence; the column notes stand at `MEMBERSHIP`."""

    virtual_time: float
    participant: int
    incarnation: int
    what: What
    peer: int | None = None
    seconds: float | None = None
    bytes: int | None = None
    iteration: int | None = None


class ClassesRow(NamedTuple):
    """How well one worker told one class at an evaluation; the column notes stand at `CLASSES`."""

    virtual_time: float
    worker: int
    label: int
    share: float
    samples: int
    accuracy: float


TESTS = ("evaluation", "full_evaluation", "arrivals")
"""The kinds of rows of METRICS that tell how good a worker was; all others tell what it did."""
INDEX = b"index"
"""The unit of the numbers of workers and parameter servers."""
_WORD = pa.dictionary(pa.int32(), pa.string())


def _column(name: str, kind: pa.DataType, unit: str, *, null: bool = False) -> pa.Field:
    return pa.field(name, kind, nullable=null, metadata={"unit": unit})


METRICS = pa.schema(
    [
        _column("virtual_time", pa.float64(), "s"),
        _column("wall_time", pa.float64(), "s"),  # since the start of the run
        _column("worker", pa.int32(), "index"),
        # "profile": a machine timed before training; "unfinished": what an iteration had come to when the run ended,
        # "cut" when its worker was gone; "arrivals": what had come of a stream since the worker's last iteration began,
        # tested before it is trained on; "full_evaluation": at the run's end on all samples, where evaluations are on
        # the first `evaluation_samples` of the workload.
        _column("kind", _WORD, " | ".join(get_args(Kind))),
        _column("iteration", pa.int64(), "iterations"),
        # Of the training batch on iterations; on evaluations of the set that the manifest's `evaluated_on` names, of a
        # stream as it would come then; on arrivals of these.
        _column("loss", pa.float64(), "nats", null=True),  # null on others
        # Of that set, or of the arrivals; null on others, and of other tasks.
        _column("accuracy", pa.float64(), "fraction", null=True),
        # Null on evaluations, and but for times and waits on others than iterations:
        _column("batch_size", pa.int32(), "samples", null=True),  # local (LBS); on arrivals, how many
        _column("global_batch_size", pa.int32(), "samples", null=True),  # GBS
        _column("staleness", pa.float64(), "iterations", null=True),  # mean lag of the updates applied; null if none
        _column("applied", pa.int32(), "remote updates", null=True),
        _column("merged", pa.int32(), "weights merged by knowledge transfer", null=True),
        _column("compute_seconds", pa.float64(), "s", null=True),  # virtual
        _column("wait_seconds", pa.float64(), "s", null=True),  # virtual
        # Null without a wait: whose message ended it, or is missing still; and the message's kind, as in TRANSFERS,
        # or "queue" where a message to that peer had to leave first, or "lost" where it ended with the peer's loss.
        _column("waited_for", pa.int32(), "index", null=True),
        _column("wait_reason", _WORD, "kind of message | queue | lost", null=True),
        # On evaluations, of the set as accuracy is: what the manifest's `metric` names, unless it is accuracy.
        _column("metric", pa.float64(), "the metric's", null=True),
        # Of the time that is computed, what is waited for samples: to be prepared, and to be read. Null without input.
        _column("prep_seconds", pa.float64(), "s", null=True),  # virtual
        _column("fetch_seconds", pa.float64(), "s", null=True),  # virtual
    ]
)

WALL_CLOCK_COLUMNS = ("wall_time",)
"""The columns of METRICS that differ between two runs of one scenario and seed."""

LINKS = pa.schema(
    [
        _column("virtual_time", pa.float64(), "s"),  # end of the interval
        _column("sender", pa.int32(), "index"),
        _column("receiver", pa.int32(), "index"),
        _column("bytes", pa.int64(), "bytes"),  # carried in it, those of messages still under way included
        # Whose last byte was sent in it:
        _column("messages", pa.int32(), "messages"),
        _column("gradients", pa.int32(), "gradient messages"),
        _column("n_percent", pa.float64(), "percent", null=True),  # mean N of the Max-N messages; null if none
    ]
)

TRANSFERS = pa.schema(
    [
        _column("begin", pa.float64(), "s"),  # when the first byte was sent
        _column(
            "end", pa.float64(), "s", null=True
        ),  # the last byte; null if it was under way when the run ended or a peer went
        _column("sender", pa.int32(), "index"),
        _column("receiver", pa.int32(), "index"),
        _column("channel", _WORD, "control | data | weights"),
        _column("kind", _WORD, "kind of message"),
        _column("bytes", pa.int64(), "bytes"),  # carried of it: all, unless it was still under way
        # Null unless it was sent in packets; until the end of those under way at the run's end, too.
        _column("lost_bytes", pa.int64(), "bytes", null=True),  # that the receiver did without
        _column("resent_bytes", pa.int64(), "bytes", null=True),
        _column("saved_bytes", pa.int64(), "bytes", null=True),  # never sent, as the receiver had enough
        _column("delivered", pa.float64(), "s", null=True),  # when the receiver had all that it waited for
    ]
)

PARTS = pa.schema(
    [
        _column("begin", pa.float64(), "s"),  # of its message, as in TRANSFERS, and so are the next three
        _column("sender", pa.int32(), "index"),
        _column("receiver", pa.int32(), "index"),
        _column("kind", _WORD, "kind of message"),
        _column("stage", _WORD, "push | pull | reduce | gather | mix", null=True),
        _column("variable", pa.int32(), "number in the model"),
        _column("large", pa.bool_(), "whether its packets have the larger entries"),
        _column("bytes", pa.int64(), "bytes"),
        _column("lost_bytes", pa.int64(), "bytes"),  # of these, that the receiver did without
        _column(
            "seconds", pa.float64(), "s", null=True
        ),  # from `begin` to the last that was there; null if none was, or unknown
    ]
)

QUEUES = pa.schema(
    [
        _column("virtual_time", pa.float64(), "s"),  # end of the interval
        _column("port", _WORD, "link that it sends on"),
        _column("bytes", pa.int64(), "bytes"),  # sent in it, headers included
        _column("mean_queued", pa.float64(), "bytes"),  # that waited
        _column("most_queued", pa.int64(), "bytes"),
        _column("dropped", pa.int64(), "packets"),
        _column("marked", pa.int64(), "packets"),
    ]
)

MEMBERSHIP = pa.schema(
    [
        _column("virtual_time", pa.float64(), "s"),
        _column("participant", pa.int32(), "index"),
        _column("incarnation", pa.int32(), "returns"),  # 0 at first
        # It dies with all that it had, is told that it will, leaves in good order, runs again; a peer notices that it
        # is gone, or there; it has the state and takes part, or nobody had any left, and it begins with none.
        _column("what", _WORD, "down | noticed | left | up | lost | found | joined | begins_anew"),
        _column("peer", pa.int32(), "index", null=True),  # who has lost or found it, or handed the state on to it
        _column("seconds", pa.float64(), "s", null=True),  # from down or left to lost, or from up to joined
        _column("bytes", pa.int64(), "bytes", null=True),  # of the state that it has fetched
        _column("iteration", pa.int64(), "iterations", null=True),  # from which on it takes part
    ]
)

CLASSES = pa.schema(
    [
        _column("virtual_time", pa.float64(), "s"),
        _column("worker", pa.int32(), "index"),
        _column("label", pa.int32(), "number of the class"),
        _column("share", pa.float64(), "fraction"),  # of what comes at that time
        _column("samples", pa.int64(), "samples"),  # of the class, that it was evaluated on
        _column("accuracy", pa.float64(), "fraction"),  # of these
    ]
)
