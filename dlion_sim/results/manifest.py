"""The manifest of a run: what is needed to judge it and to repeat it."""

from __future__ import annotations

import hashlib
import os
import platform
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal, Required, TypedDict

import msgspec

from dlion_sim.results.cost import Tariff
from dlion_sim.results.json_document import Number, Seconds, ShortText
from dlion_sim.results.tables import INDEX_MOST

_PACKAGES = (
    *("dlion-sim", "llvmlite", "networkx", "numba", "numpy", "pandas", "pyarrow"),
    *("scikit-learn", "simpy", "torch"),
)
_SOURCE = Path(__file__).parents[1]

Count = Annotated[int, Number]
Incarnation = Annotated[int, msgspec.Meta(ge=0, le=INDEX_MOST)]
EvaluatedOn = Literal["test", "validation"]
"""The set of evaluations: test samples, or held-out training samples."""


class InSweep(TypedDict, total=False):
    """The run's place in a sweep."""

    point: dict[ShortText, ShortText]
    """The values of the sweep's axes, as texts by axis."""
    digest: str


class CostAs(TypedDict):
    """The larger model whose cost was charged, in quantities as a scenario writes them."""

    parameters: ShortText
    flops: ShortText


class ChangeFields(TypedDict):
    """A change of a stream's samples, and its times."""

    what: ShortText
    begin: Seconds
    end: Seconds


class PathDown(TypedDict):
    """An outage of the path from a cloud to another one; `end` is None if it is permanent."""

    sender: ShortText
    receiver: ShortText
    begin: Seconds
    end: Seconds | None


class MetricFields(TypedDict):
    """See `Metric`."""

    name: ShortText
    higher_is_better: bool


class Lateness(TypedDict):
    """How often, and by how many seconds, real computations took longer than modelled."""

    computations: Count
    late: Count
    seconds_late: Seconds
    most_seconds_late: Seconds


class EvaluationSamples(TypedDict):
    """Number of samples of each evaluation, and of the one at the run's end, on all samples."""

    curve: Count
    full: Count


class NodeFields(TypedDict, total=False):
    """A node of a live run."""

    rank: Count
    incarnation: Incarnation | None
    begun: bool | None
    status: str
    stopped_by: str | None
    late: Lateness | None
    lost: dict[str, str] | None
    log: list[str]


class Manifest(TypedDict, total=False):
    """The known keys of a manifest, which may have more."""

    status: Required[Literal["running", "completed", "interrupted", "failed"]]
    scenario: ShortText
    system: ShortText
    replaced: dict[ShortText, ShortText]
    """Settings replaced in the system, by path below it."""
    transport: ShortText
    seed: Count
    way: Literal["simulate", "live", "emulate"]
    device: ShortText
    workers: list[ShortText]
    variables: list[ShortText]
    """The model's, by number, if tables refer to them."""
    servers: list[ShortText]
    """The names of the parameter servers, which are numbered after the workers."""
    clouds: list[ShortText]
    """The micro-cloud of each participant."""
    cost_as: CostAs
    """If it is not the trained model."""
    tariff: Tariff
    """If the scenario has prices."""
    drift: list[ChangeFields]
    """Of a stream."""
    paths_down: list[PathDown]
    """All of them, unless there are too many."""
    training_samples: Count
    partition: list[list[Count]]
    """Number of samples of each class at each worker."""
    owners: list[dict[ShortText, Count]]
    """If samples are partitioned by owner: number of each owner's samples at each worker."""
    versions: dict[ShortText, ShortText]
    metric: MetricFields
    """The metric of evaluations, besides the loss."""
    evaluated_server: Count
    """If its parameters are evaluated, in place of the workers'."""
    evaluated_on: EvaluatedOn
    evaluation_samples: EvaluationSamples
    sweep: InSweep
    resumed_at: list[Seconds]
    problem: str
    trace: str
    run: str
    """The digest of a live run."""
    rank: Count
    """The participant, of a node's part of a live run."""
    incarnation: Incarnation
    """Its, in such a part."""
    begun: bool
    """Whether the run had begun for it."""
    paced: bool
    late: Lateness | None
    nodes: list[NodeFields]


def environment() -> dict[str, Any]:
    """This machine and its software: versions, platform, host name, CPUs, the time (UTC, ISO 8601).

    The versions are those of Python and of the packages that results depend on, with a digest of this package's source,
    which distinguishes two states of the code with one version.
    """
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "hostname": platform.node(),
        "platform": platform.platform(),
        "cpu_count": os.cpu_count(),
        "versions": dict(_versions()),
    }


@cache
def _versions() -> dict[str, str]:
    digest = hashlib.sha256()
    for file in sorted(_SOURCE.rglob("*.py")):
        content = file.read_bytes()
        digest.update(f"{file.relative_to(_SOURCE).as_posix()}\0{len(content)}\0".encode() + content)
    return {
        "python": platform.python_version(),
        **{package.replace("-", "_"): version(package) for package in _PACKAGES},
        "dlion_sim_source": digest.hexdigest()[:16],
    }
