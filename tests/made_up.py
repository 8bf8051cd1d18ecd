"""Run folders with chosen contents, without a simulation."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from dlion_sim.results import (
    ClassesRow,
    Ending,
    LinksRow,
    MembershipRow,
    MetricsRow,
    PartsRow,
    QueuesRow,
    Run,
    RunWriter,
    Status,
    TransfersRow,
    summarize,
    system_label,
)
from dlion_sim.results.manifest import EvaluatedOn
from dlion_sim.results.summarize import Evaluation


def made_up_run(
    folder: Path,
    accuracies: Sequence[float] = (0.1, 0.5, 0.8),
    *,
    system: str = "dlion",
    seed: int = 0,
    scenario: str = "made-up",
    extra: str = "",
    point: Mapping[str, str] | None = None,
    status: Status = "completed",
    way: str = "simulate",
    workers: int = 2,
    clouds: Sequence[str] = ("east",),
    every: float = 10.0,
    evaluated_on: EvaluatedOn = "test",
    replaced: Mapping[str, str] | None = None,
    exchanging: bool = True,
    lossy: bool = False,
    transport: str = "reliable",
    absent: bool = False,
    streamed: bool = False,
    diverged: bool = False,
) -> Run:
    """Evaluations of `workers` around the mean `accuracies` every so many seconds, an iteration every second.

    `extra` is text of the scenario's that makes it another one, as `transport` and what is `replaced` in the system do.
    Each second a worker computes for 0.6 s, waits for 0.4 s and, if `exchanging`, takes in an update; each interval
    it sends 1 MB to the next worker. Workers are in the `clouds` in turn. Where it is `lossy`, there are also a
    message of 10 kB of two variables each second, and queues. Where it is `streamed`, four samples come to each
    worker each second, half of which are told right, and two classes are evaluated, the second of which comes after
    the first evaluation. Where somebody is `absent`, the first worker is away for 2 s and fetches 4 kB when it is
    back.
    """
    where = [clouds[worker % len(clouds)] for worker in range(workers)]
    about = {"scenario": scenario, "system": system, "seed": seed}
    writer = RunWriter.create(
        folder,
        scenario_yaml=f"name: {json.dumps(scenario)}\nseed: {seed}\n"
        + f"system: {json.dumps(system)}\n" * (not extra.startswith("system:"))
        + f"replaced: {dict(replaced or {})}\n{extra}"
        + f"transport: {transport}\n" * (transport != "reliable"),
        manifest={
            **about,
            "replaced": dict(replaced or {}),
            "way": way,
            "transport": transport,
            "evaluated_on": evaluated_on,
            "workers": [f"{where[worker]}/{worker}" for worker in range(workers)],
            "clouds": where,
            **({"variables": ["weight", "bias"]} if lossy else {}),
            **({"drift": DRIFT} if streamed else {}),
            **({"sweep": {"point": dict(point)}} if point else {}),
        },
    )
    end = every * max(len(accuracies) - 1, 0)
    evaluations = []
    for number, mean in enumerate(accuracies):
        apart = min(0.02, 2 * min(mean, 1 - mean) / max(workers - 1, 1))
        scores = {worker: max(0.0, mean + apart * (worker - (workers - 1) / 2)) for worker in range(workers)}
        evaluations.append((number * every, scores))
        for worker, accuracy in scores.items():
            writer.append(MetricsRow(number * every, number, worker, "evaluation", number, 1.0, accuracy))
            if number and workers > 1:
                writer.append(
                    LinksRow(number * every, worker, (worker + 1) % workers, 1_000_000, 10, 10, min(5.0 * number, 100))
                )
    for second in range(1, int(end) + 1):
        for worker in range(workers):
            writer.append(
                MetricsRow(
                    second,
                    second,
                    worker,
                    "iteration",
                    second,
                    1.0,
                    batch_size=8 * (worker + 1 + second // 10),
                    global_batch_size=64,
                    staleness=0.5,
                    applied=int(exchanging),
                    merged=0,
                    compute_seconds=0.6,
                    wait_seconds=0.4,
                )
            )
    if lossy:
        _send_packets(writer, workers, int(end))
    if absent:
        for row in AWAY:
            writer.append(row)
    if streamed:
        _stream(writer, workers, int(end), evaluations)
    writer.finish(
        summarize(
            **about,
            system_label=system_label(writer.manifest),
            ending=Ending(status, "duration", end),
            wall_seconds=1.0,
            evaluation_seconds=0.1,
            samples=100,
            wan_bytes=sum(
                1_000_000 * (where[one] != where[(one + 1) % workers]) * (number > 0)
                for number in range(len(accuracies))
                for one in range(workers)
            ),
            bytes_sent=2_000_000 * max(len(accuracies) - 1, 0),
            iterations=dict.fromkeys(range(workers), int(end)),
            exchanges=dict.fromkeys(range(workers), int(end) * exchanging),
            losses=dict.fromkeys(range(workers), (2.0, 40.0 if diverged else 1.0)),
            evaluations=evaluations,
            evaluated_on=evaluated_on,
            transport=TRANSPORT if lossy else None,
            availability=AVAILABILITY if absent else None,
            stream=STREAMED if streamed else None,
        )
    )
    return Run.open(folder)


DRIFT = [
    {"what": "class 1 comes", "begin": 6.0, "end": 6.0},
    {"what": "rotation", "begin": 8.0, "end": 12.0},
    {"what": "labels shift", "begin": 8.0, "end": 12.0},
    {"what": "labels shift", "begin": 8.0, "end": 12.0},
]
STREAMED = {"scored": 160, "online_accuracy": 0.5, "forgetting": 0.05, "adaptation": {"1": 10.0}}


def _stream(writer: RunWriter, workers: int, seconds: int, evaluations: Sequence[Evaluation]) -> None:
    for second in range(1, seconds + 1):
        for worker in range(workers):
            writer.append(MetricsRow(second, second, worker, "arrivals", second - 1, 1.0, 0.5, batch_size=4))
    for time, scores in evaluations:
        for worker, accuracy in scores.items():
            late = 0.5 * (time > 0)
            for label, share in enumerate((1 - late, late)):
                writer.append(ClassesRow(time, worker, label, share, 50, accuracy))


TRANSPORT = {
    "lost": 0.1,
    "resent": 0.05,
    "saved": 0.04,
    "messages": 40,
    "completion": {"mean": 0.2, "p50": 0.125, "p99": 0.75},
}


AWAY = (
    MembershipRow(1.0, 0, 0, "down"),
    MembershipRow(1.25, 0, 0, "lost", 1, 0.25),
    MembershipRow(3.0, 0, 1, "up"),
    MembershipRow(3.0, 0, 1, "found", 1),
    MembershipRow(3.5, 0, 1, "joined", 1, 0.5, 4000, 3),
)
AVAILABILITY = {
    "up": [0.9, 1.0],
    "computed": 100,
    "useful": 75,
    "lost_seconds": 0.25,
    "state_bytes": 4000,
    "to_notice": {"mean": 0.25, "most": 0.25},
    "to_join": {"mean": 0.5, "most": 0.5},
    "messages": {"sent": 50, "delivered": 45, "cut": 3, "refused": 1, "under_way": 1},
}


def _send_packets(writer: RunWriter, workers: int, seconds: int) -> None:
    """A message a second of each worker to the next, which takes longer the later it is, and three links' queues."""
    for second in range(1, seconds + 1):
        for worker in range(workers):
            ends, took = (worker, (worker + 1) % workers), 0.01 * second
            lost = {"lost_bytes": 1000, "resent_bytes": 500, "saved_bytes": 400, "delivered": second + took}
            writer.append(
                TransfersRow(second, second + 0.5 * took, *ends, "data", "contribution", 9600, **lost)  # type: ignore[arg-type]
            )
            for variable in (0, 1):
                for large in (False, True):
                    late = took * (1 + variable - 0.5 * large)
                    gone = 0 if large else 500
                    row = PartsRow(second, *ends, "contribution", "push", variable, large, 2500, gone, late)
                    writer.append(row)
        for number, port in enumerate(("east/0 down", "east leaf 0 -> spine 1", "east/1 down")):
            queued = 1000.0 * (number + 1)
            writer.append(QueuesRow(second, port, 50_000, queued, int(10 * queued), number * second, 2 * number))
