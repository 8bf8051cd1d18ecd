"""One run folder from the parts that the nodes of a run wrote."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dlion_sim.assembly import Recorder, Setting, manifest_fields
from dlion_sim.errors import InputError
from dlion_sim.files import opened
from dlion_sim.live.handshake import run_digest
from dlion_sim.live.machine import Lateness
from dlion_sim.live.node_config import LEFT
from dlion_sim.results import (
    CLASSES,
    LINKS,
    MEMBERSHIP,
    METRICS,
    PARTS,
    TRANSFERS,
    Ending,
    FolderLock,
    MembershipRow,
    Run,
    RunWriter,
    Status,
    environment,
    run_folder,
)
from dlion_sim.results.tables import Table
from dlion_sim.yaml_text import read_text

_ORDERS: Mapping[Table[Any], Callable[[Any], Any]] = {
    METRICS: attrgetter("virtual_time", "worker", "iteration"),
    LINKS: attrgetter("virtual_time", "sender", "receiver"),
    CLASSES: attrgetter("virtual_time", "worker", "label"),
    TRANSFERS: lambda row: (row.end is None, row.end, row.begin, row.sender, row.receiver),
    PARTS: attrgetter("begin", "sender", "receiver"),
}
"""The tables that are combined row by row, and the keys by which rows are sorted."""
_OF_A_NODE = (
    *("rank", "incarnation", "begun", "hostname", "platform", "cpu_count", "versions", "device", "device_name"),
    *("arithmetic", "kernels"),
    *("late", "lost", "refused_connections", "datagrams"),
)
"""The keys of a part's manifest on its node; the last four only at its end."""
_DECISIVE_FIRST: Sequence[Status] = ("interrupted", "failed", "completed")
"""Nodes may fail because another one was interrupted a little earlier."""
_LOG_LINES = 20
"""The last lines of a node's log, which the manifest keeps."""
_LOG_BYTES = 64_000
"""The most that is read for them."""


@dataclass(frozen=True)
class Part:
    """What one incarnation of a participant wrote; without a summary if it was killed."""

    run: Run

    @classmethod
    def open(cls, folder: Path) -> Part:
        """Raises InputError if the folder holds no part of a run."""
        run = Run.open(folder)
        if "rank" not in run.manifest:
            raise InputError("is a run, but not a node's part of one", file=folder)
        return cls(run)

    @property
    def rank(self) -> int:
        return int(self.run.manifest["rank"])

    @property
    def incarnation(self) -> int:
        return int(self.run.manifest.get("incarnation", 0))

    @property
    def status(self) -> str:
        """How its run ended; "lost" if it was killed."""
        return str(self.run.summary["status"]) if self.run.summary else "lost"

    @property
    def stopped_by(self) -> str:
        """What ended its run; empty if it was killed."""
        return str(self.run.summary["stopped_by"]) if self.run.summary else ""

    @property
    def seconds(self) -> float:
        """The duration of its run, as far as it is known."""
        if self.run.summary:
            return float(self.run.summary["virtual_seconds"])
        return max((row.virtual_time for row in self.run.rows(METRICS)), default=0.0)

    @property
    def lateness(self) -> Lateness:
        """How late its computations were; all 0 if it was killed, or computes nothing."""
        late = self.run.manifest.get("late")
        return Lateness(**{field.name: late[field.name] for field in fields(Lateness)}) if late else Lateness()

    def rows_until(self, end: float, table: Table[Any]) -> Iterator[Any]:
        """Of a table, with observations at the part's own end moved to that of the run: nothing changed in between.

        What a kill was expected to cut counts if the kill came: only then is it the last row.
        """
        own_end = self.run.summary["virtual_seconds"] if self.run.summary else None
        rows = self.run.rows(table)
        for number, row in enumerate(rows, 1):
            if getattr(row, "kind", "") == "cut" and number < len(rows):
                continue
            is_last = own_end is not None and getattr(row, "virtual_time", None) == own_end
            yield row._replace(virtual_time=end) if is_last and getattr(row, "kind", "") != "unfinished" else row


def manifest_of(setting: Setting) -> dict[str, Any]:
    """The beginning of the manifest of a live run, and of each part."""
    return {**environment(), "way": "live", **manifest_fields(setting), "run": run_digest(setting).hex()}


def part_folder(folder: Path, rank: int, incarnation: int = 0) -> Path:
    """Where in `folder` an incarnation of a participant writes its part."""
    return folder / (f"rank-{rank}.{incarnation}" if incarnation else f"rank-{rank}")


def log_of(part: Path) -> Path:
    """The log of the node that writes a part."""
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

    A killed node is in it up to its last rows, and without accuracy. `manifest` and `membership` are added to those of
    the parts. Raises InputError if there are no parts, or not all are of one run.
    """
    found = [Part.open(each) for each in parts_in.glob("rank-*") if each.is_dir()]
    parts = sorted(found, key=lambda part: (part.rank, part.incarnation, part.run.folder))
    if not parts:
        raise InputError("holds no parts of a run", file=parts_in, allowed="the folder that rank-0, rank-1, ... are in")
    if any(_participants(part) != _participants(parts[0]) for part in parts):
        raise InputError("holds parts of different runs", file=parts_in)
    for one, other in pairwise(parts):
        if (one.rank, one.incarnation) == (other.rank, other.incarnation):
            problem = f"has the same rank and incarnation as '{one.run.folder.name}'"
            raise InputError(problem, file=other.run.folder, allowed="one part of each incarnation")
    of_run = parts[0].run.manifest
    shared = {key: value for key, value in of_run.items() if key not in _OF_A_NODE}
    for key in ("device", "device_name"):
        if told := {str(part.run.manifest[key]) for part in parts if key in part.run.manifest}:
            shared[key] = ", ".join(sorted(told))
    ending = _ending(parts, len(of_run["workers"]))
    of_nodes = (row._replace(incarnation=part.incarnation) for part in parts for row in part.run.rows(MEMBERSHIP))
    rows: list[Any] = [*with_incarnations([*membership, *of_nodes])]
    for table, order in _ORDERS.items():
        rows += sorted((row for part in parts for row in part.rows_until(ending.seconds, table)), key=order)
    lateness = Lateness.of_all(part.lateness for part in parts)
    # Only once all is read: an error leaves nothing behind.
    writer = RunWriter.create(
        folder,
        scenario_yaml=read_text(parts[0].run.folder / run_folder.SCENARIO),
        manifest={**shared, **manifest, "nodes": list(map(_node, parts))},
        force=force,
        hold=hold,
    )
    try:
        recorder = Recorder(writer, range(len(of_run["workers"])))
        for row in rows:
            recorder.append(row)
        writer.finish(recorder.summary(ending, late=asdict(lateness)))
    except BaseException:
        if hold is None:  # Its holder would have it say how the run has failed.
            run_folder.clear(folder)
            writer.close()
        raise
    return Run.open(folder)


def with_incarnations(rows: Iterable[MembershipRow]) -> Iterator[MembershipRow]:
    """The rows of all nodes in order, completed by what a node does not know of others.

    Rows on a node's own begin and end have its incarnation; others lose and find the latest one. Rows on a loss get the
    seconds since the end.
    """
    ended: dict[int, float] = {}
    incarnations: dict[int, int] = {}
    for row in sorted(rows, key=lambda row: (row.virtual_time, row.what not in ("down", "left"))):
        who, seconds = row.participant, row.seconds
        match row.what:
            case "down" | "left":
                ended[who] = row.virtual_time
            case "up":
                ended.pop(who, None)
                incarnations[who] = row.incarnation
            case "lost" if who in ended:
                seconds = row.virtual_time - ended[who]
            case _:
                pass
        of_others = row.what in ("lost", "found")
        incarnation = incarnations.get(who, 0) if of_others else row.incarnation
        yield row._replace(incarnation=incarnation, seconds=seconds)


def _participants(part: Part) -> tuple[Any, ...]:
    """The run that a part is of, and its participants."""
    manifest = part.run.manifest
    return manifest["run"], manifest["workers"], manifest.get("servers", [])


def _ending(parts: Sequence[Part], workers: int) -> Ending:
    """How the run ended: as the worker, of those that were not lost, whose ending explains the others'."""
    end = max(part.seconds for part in parts)
    ended = [part for part in parts if part.rank < workers and part.run.summary]
    for status in _DECISIVE_FIRST:
        # A worker that has left has not seen the end.
        for part in sorted(ended, key=lambda part: part.stopped_by == LEFT):
            if part.status == status:
                return Ending(status, part.stopped_by, end)
    return Ending("failed", "every worker was lost", end)


def _node(part: Part) -> dict[str, Any]:
    """A node's entry in the manifest of the run."""
    manifest, summary = part.run.manifest, part.run.summary or {}
    return {
        **{key: manifest.get(key) for key in _OF_A_NODE},
        "status": part.status,
        "stopped_by": summary.get("stopped_by"),
        "log": _last_lines(log_of(part.run.folder)),
    }


def _last_lines(log: Path) -> list[str]:
    """Of a log that may come from anybody, if there is one. Raises InputError where it is none."""
    if log.is_symlink():
        raise InputError("is a link, to what may be meant for nobody else", file=log)
    if not log.exists():
        return []
    with opened(log) as content:
        content.seek(max(0, content.seek(0, os.SEEK_END) - _LOG_BYTES))
        return content.read(_LOG_BYTES).decode(errors="replace").splitlines()[-_LOG_LINES:]
