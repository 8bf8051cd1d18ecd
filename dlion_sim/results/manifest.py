"""The manifest of a run: what a reader needs to judge it or to make it again."""

from __future__ import annotations

import hashlib
import os
import platform
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal, Required, TypedDict

from dlion_sim.results.cost import Tariff
from dlion_sim.results.json_document import Number, Seconds, ShortText

_PACKAGES = (
    *("dlion-sim", "llvmlite", "networkx", "numba", "numpy", "pandas", "pyarrow"),
    *("scikit-learn", "simpy", "torch"),
)
_SOURCE = Path(__file__).parents[1]

Count = Annotated[int, Number]
EvaluatedOn = Literal["test", "validation"]
"""What losses and accuracies were measured on: the test set, or training samples that were held out for it."""


class InSweep(TypedDict, total=False):
    """Which run of a sweep it is."""

    point: dict[ShortText, ShortText]
    """The values of the sweep's axes, as texts by axis."""
    digest: str


class CostAs(TypedDict):
    """The larger model whose cost was charged, in quantities as a scenario writes them."""

    parameters: ShortText
    flops: ShortText


class ChangeFields(TypedDict):
    """What of a stream's samples changes, and from when to when."""

    what: ShortText
    begin: Seconds
    end: Seconds


class PathDown(TypedDict):
    """From when to when nothing goes from a cloud to another one, if the end is known: it may be for good."""

    sender: ShortText
    receiver: ShortText
    begin: Seconds
    end: Seconds | None


class MetricFields(TypedDict):
    """As `Metric` has it."""

    name: ShortText
    higher_is_better: bool


class Lateness(TypedDict):
    """How often and by how many seconds real computations took longer than modelled."""

    computations: Count
    late: Count
    seconds_late: Seconds
    most_seconds_late: Seconds


class EvaluationSamples(TypedDict):
    """How many samples each evaluation of the run is on, and the one at its end, which is on all that there are."""

    curve: Count
    full: Count


class NodeFields(TypedDict, total=False):
    """What is known of a node of a live run."""

    rank: Count
    status: str
    stopped_by: str | None
    late: Lateness | None
    lost: dict[str, str] | None
    log: list[str]


class Manifest(TypedDict, total=False):
    """What is read of a manifest, and what that must be where it is there; it may tell more."""

    status: Required[Literal["running", "completed", "interrupted", "failed"]]
    scenario: ShortText
    system: ShortText
    replaced: dict[ShortText, ShortText]
    """In the system, by path below it."""
    transport: ShortText
    seed: Count
    way: Literal["simulate", "live", "emulate"]
    device: ShortText
    workers: list[ShortText]
    variables: list[ShortText]
    """Names of the model's, by number, where tables tell of them."""
    """Their names, by number."""
    servers: list[ShortText]
    """The names of the parameter servers, whose numbers follow."""
    clouds: list[ShortText]
    """The micro-clouds of all these."""
    cost_as: CostAs
    """Where it is not that of the model which learns."""
    tariff: Tariff
    """Where the scenario has prices."""
    drift: list[ChangeFields]
    """Where samples come as a stream."""
    paths_down: list[PathDown]
    """Where the scenario says so, and they are not too many to be told."""
    training_samples: Count
    partition: list[list[Count]]
    """How many of each class lie at each worker."""
    owners: list[dict[ShortText, Count]]
    """Where samples lie by their owners: how many of each owner lie at each worker."""
    versions: dict[ShortText, ShortText]
    metric: MetricFields
    """What evaluations are by, besides the loss."""
    evaluated_on: EvaluatedOn
    evaluation_samples: EvaluationSamples
    sweep: InSweep
    resumed_at: list[Seconds]
    problem: str
    trace: str
    run: str
    """The digest of a live run."""
    rank: Count
    """Of a node's part of a live run: whose it is."""
    paced: bool
    late: Lateness | None
    nodes: list[NodeFields]


def environment() -> dict[str, Any]:
    """This machine and its software now: versions, platform, host name, CPUs, the time (UTC, ISO 8601).

    The versions are those of Python and of the packages that results come from, with a digest of this package's source:
    it tells apart two states of the code that call themselves by one version.
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
