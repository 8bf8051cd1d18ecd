"""From the parts that the nodes of a run wrote to the one run folder of it all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from dlion_sim.assembly import Recorder, Setting, manifest_fields
from dlion_sim.errors import InputError
from dlion_sim.live.handshake import run_digest
from dlion_sim.live.incarnations import with_incarnations
from dlion_sim.live.machine import Lateness
from dlion_sim.live.node_config import LEFT
from dlion_sim.results import (
    CLASSES,
    LINKS,
    MEMBERSHIP,
    METRICS,
    PARTS,
    TRANSFERS,
    ClassesRow,
    Ending,
    FolderLock,
    LinksRow,
    MembershipRow,
    MetricsRow,
    PartsRow,
    Run,
    RunWriter,
    Status,
    TransfersRow,
    environment,
    run_folder,
)
from dlion_sim.yaml_text import read_text

R = TypeVar("R", MetricsRow, LinksRow, ClassesRow)

_OF_A_NODE = (
    *("rank", "incarnation", "hostname", "platform", "cpu_count", "versions", "device", "device_name"),
    *("arithmetic", "kernels"),
    *("late", "lost", "refused_connections", "datagrams"),
)
"""What the manifest of a part tells of its node; the last four only at its end."""
_DECISIVE_FIRST: Sequence[Status] = ("interrupted", "failed", "completed")
"""Nodes may fail because another one was interrupted a little earlier."""
_LOG_LINES = 20
"""Of what a node has said, those that the manifest keeps."""


@dataclass(frozen=True)
class Part:
    """What one participant wrote; without a summary where it was killed."""

    run: Run
    metrics: Sequence[MetricsRow]
    links: Sequence[LinksRow]
    transfers: Sequence[TransfersRow]
    of_messages: Sequence[PartsRow]
    """Of the parts that its messages are of."""
    membership: Sequence[MembershipRow]
    """Of the participant's own incarnation, also where they are of another one, whose it does not know."""
    classes: Sequence[ClassesRow]

    @classmethod
    def open(cls, folder: Path) -> Part:
        """Raises InputError where the folder holds no part of a run."""
        run = Run.open(folder)
        if "rank" not in run.manifest:
            raise InputError("is a run, but not a node's part of one", file=folder)
        incarnation = int(run.manifest.get("incarnation", 0))
        return cls(
            run,
            run.rows(METRICS),
            run.rows(LINKS),
            run.rows(TRANSFERS),
            run.rows(PARTS),
            [row._replace(incarnation=incarnation) for row in run.rows(MEMBERSHIP)],
            run.rows(CLASSES),
        )

    @property
    def rank(self) -> int:
        """Whose it is."""
        return int(self.run.manifest["rank"])

    @property
    def incarnation(self) -> int:
        """How often its process had ended before."""
        return int(self.run.manifest.get("incarnation", 0))

    @property
    def status(self) -> str:
        """How the participant's run ended; "lost" where it was killed."""
        return str(self.run.summary["status"]) if self.run.summary else "lost"

    @property
    def stopped_by(self) -> str:
        """What ended the participant's run; nothing that is known where it was killed."""
        return str(self.run.summary["stopped_by"]) if self.run.summary else ""

    @property
    def seconds(self) -> float:
        """How long its run lasted, as far as is known."""
        if self.run.summary:
            return float(self.run.summary["virtual_seconds"])
        return max((row.virtual_time for row in self.metrics), default=0.0)


def manifest_of(setting: Setting) -> dict[str, Any]:
    """What the manifest of a live run begins with, and that of each part."""
    return {**environment(), "way": "live", **manifest_fields(setting), "run": run_digest(setting).hex()}


def part_folder(folder: Path, rank: int, incarnation: int = 0) -> Path:
    """Where in `folder` a participant writes its part, whose process has ended so often before."""
    return folder / (f"rank-{rank}.{incarnation}" if incarnation else f"rank-{rank}")


def log_of(part: Path) -> Path:
    """What the node says that writes a part."""
    return part.with_name(f"{part.name}.log")


def gather(
    parts_in: Path,
    folder: Path,
    *,
    force: bool = False,
    hold: FolderLock | None = None,
    manifest: Mapping[str, Any] = MappingProxyType({}),
    membership: Sequence[MembershipRow] = (),
) -> Run:
    """Make one run folder of the parts in the folder `parts_in`, and return it.

    Whoever was killed is in it up to what it wrote last, and without accuracy. `manifest` and `membership` add to what
    those of the parts tell: whose process was ended, for one. Raises InputError where there are no parts, or not all
    are of one run.
    """
    found = [Part.open(each) for each in parts_in.glob("rank-*") if each.is_dir()]
    parts = sorted(found, key=lambda part: (part.rank, part.incarnation))
    if not parts:
        raise InputError("holds no parts of a run", file=parts_in, allowed="the folder that rank-0, rank-1, ... are in")
    if len({part.run.manifest["run"] for part in parts}) > 1:
        raise InputError("holds parts of different runs", file=parts_in)
    of_run = parts[0].run.manifest
    shared = {key: value for key, value in of_run.items() if key not in _OF_A_NODE}
    for key in ("device", "device_name"):
        if told := {str(part.run.manifest[key]) for part in parts if key in part.run.manifest}:
            shared[key] = ", ".join(sorted(told))
    writer = RunWriter.create(
        folder,
        scenario_yaml=read_text(parts[0].run.folder / run_folder.SCENARIO),
        manifest={**shared, **manifest, "nodes": list(map(_node, parts))},
        force=force,
        hold=hold,
    )
    recorder = Recorder(writer, range(len(of_run["workers"])))
    ending = _ending(parts, len(of_run["workers"]))
    metrics = [row for part in parts for row in _ending_at(ending.seconds, part, part.metrics)]
    links = [row for part in parts for row in _ending_at(ending.seconds, part, part.links)]
    coming_and_going = [*membership, *(row for part in parts for row in part.membership)]
    for of_one in with_incarnations(coming_and_going):
        recorder.append(of_one)
    for row in sorted(metrics, key=lambda row: (row.virtual_time, row.worker, row.iteration)):
        recorder.append(row)
    for link in sorted(links, key=lambda row: (row.virtual_time, row.sender, row.receiver)):
        recorder.append(link)
    classes = [row for part in parts for row in _ending_at(ending.seconds, part, part.classes)]
    for each in sorted(classes, key=lambda row: (row.virtual_time, row.worker, row.label)):
        recorder.append(each)
    transfers = [row for part in parts for row in part.transfers]
    for transfer in sorted(transfers, key=lambda row: (row.end is None, row.end, row.begin, row.sender, row.receiver)):
        recorder.append(transfer)
    of_messages = [row for part in parts for row in part.of_messages]
    for of_message in sorted(of_messages, key=lambda row: (row.begin, row.sender, row.receiver)):
        recorder.append(of_message)
    lateness = Lateness.of_all(Lateness(**late) for part in parts if (late := part.run.manifest.get("late")))
    writer.finish(recorder.summary(ending, late=asdict(lateness)))
    return Run.open(folder)


def _ending_at(end: float, part: Part, rows: Sequence[R]) -> Iterator[R]:
    """Rows of a part, with what it observed at its own end moved to that of the run: in between it did nothing.

    But what it had not finished stays where it was.
    """
    own_end = part.run.summary["virtual_seconds"] if part.run.summary else None
    for row in rows:
        stays = row.virtual_time != own_end or (isinstance(row, MetricsRow) and row.kind == "unfinished")
        yield row if stays else row._replace(virtual_time=end)


def _ending(parts: Sequence[Part], workers: int) -> Ending:
    """How the run ended: as that worker did, of those that were not lost, whose ending explains the others'."""
    end = max(part.seconds for part in parts)
    ended = [part for part in parts if part.rank < workers and part.run.summary]
    for status in _DECISIVE_FIRST:
        # Who has left has not seen the end.
        for part in sorted(ended, key=lambda part: part.stopped_by == LEFT):
            if part.status == status:
                return Ending(status, part.stopped_by, end)
    return Ending("failed", "every worker was lost", end)


def _node(part: Part) -> dict[str, Any]:
    """What the manifest of a whole run tells of a node."""
    manifest, summary = part.run.manifest, part.run.summary or {}
    log = log_of(part.run.folder)
    return {
        **{key: manifest.get(key) for key in _OF_A_NODE},
        "status": part.status,
        "stopped_by": summary.get("stopped_by"),
        "log": log.read_text(errors="replace").splitlines()[-_LOG_LINES:] if log.exists() else [],
    }
