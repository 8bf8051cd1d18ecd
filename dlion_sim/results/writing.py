"""Writing a run folder while the run goes, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from dlion_sim.errors import InputError
from dlion_sim.results import growing_table, run_folder
from dlion_sim.results.atomic import TEMPORARY, json_bytes, write
from dlion_sim.results.folder_lock import FolderLock
from dlion_sim.results.growing_table import GrowingTable
from dlion_sim.results.json_document import check
from dlion_sim.results.manifest import Manifest
from dlion_sim.results.names import with_names
from dlion_sim.results.reading import Run
from dlion_sim.results.summary import Status
from dlion_sim.results.tables import (
    CLASSES,
    LINKS,
    MEMBERSHIP,
    METRICS,
    PARTS,
    QUEUES,
    TRANSFERS,
    ClassesRow,
    LinksRow,
    MembershipRow,
    MetricsRow,
    PartsRow,
    QueuesRow,
    TransfersRow,
)

_TABLES = (
    (run_folder.METRICS, METRICS),
    (run_folder.LINKS, LINKS),
    (run_folder.TRANSFERS, TRANSFERS),
    (run_folder.PARTS, PARTS),
    (run_folder.QUEUES, QUEUES),
    (run_folder.MEMBERSHIP, MEMBERSHIP),
    (run_folder.CLASSES, CLASSES),
)
_OPTIONAL = {run_folder.PARTS, run_folder.QUEUES, run_folder.MEMBERSHIP, run_folder.CLASSES}
"""Not there where nothing is to be told."""
_UNBORN = run_folder.MANIFEST + TEMPORARY
"""All that is left of a run that was killed before it had its manifest."""


class RunWriter:
    """The one writer of one run folder; `create` makes both, `resume` a new writer of an old folder.

    Rows reach the disk as they gather, with a row that comes 10 s after the last flush at the latest; until `finish`,
    the folder reads as a run whose status is "running", and nobody else can write it.
    """

    def __init__(
        self, folder: Path, hold: FolderLock, manifest: Mapping[str, Any], tables: Sequence[GrowingTable]
    ) -> None:
        self.folder = folder
        self.hold = hold
        self.manifest = manifest
        self._tables = tables
        self._metrics, self._links, self._transfers, self._parts, self._queues, self._membership, self._classes = tables

    @classmethod
    def create(
        cls,
        folder: Path,
        *,
        scenario_yaml: str,
        manifest: Mapping[str, Any],
        force: bool = False,
        hold: FolderLock | None = None,
    ) -> RunWriter:
        """Start a run in `folder`, which must be new or empty; `force` replaces the run that it holds.

        It may be that the caller holds the folder already, by `hold`.
        `manifest` may be anything that JSON can say; its "status" is kept here. Raises InputError, and leaves nothing
        behind, where the folder cannot be used.
        """
        running = json_bytes({**manifest, "status": "running"})
        check(msgspec.json.decode(running), Manifest, folder / run_folder.MANIFEST)
        try:
            _refuse_unless_free(folder, force=force)
            with ExitStack() as undo:
                for missing in [path for path in (folder, *folder.parents) if not path.exists()][::-1]:
                    missing.mkdir()
                    undo.callback(missing.rmdir)
                hold = hold or FolderLock(folder)
                undo.callback(hold.close)
                _refuse_unless_free(folder, force=force)  # Somebody else may have been faster.
                undo.callback(run_folder.clear, folder)
                run_folder.clear(folder)
                write(folder / run_folder.MANIFEST, running)
                write(folder / run_folder.SCENARIO, scenario_yaml.encode())
                named = partial(with_names, manifest=manifest)
                tables = [
                    GrowingTable(folder / name, schema, named, optional=name in _OPTIONAL) for name, schema in _TABLES
                ]
                undo.pop_all()
        except OSError as error:
            raise InputError(
                f"cannot be written: {error.strerror}", file=folder, allowed="a folder where you may write"
            ) from error
        return cls(folder, hold, manifest, tables)

    @classmethod
    def resume(cls, folder: Path, hold: FolderLock, rows: Sequence[int], **facts: Any) -> RunWriter:
        """Go on with the run in `folder`, which the caller holds, after so many rows, see `rows`.

        `facts` are added to its manifest. Raises InputError, with nothing changed, where there are not as many, and
        OSError where the folder cannot be written.
        """
        manifest = {**Run.open(folder).manifest, **facts, "status": "running"}
        beginnings = [
            growing_table.find_beginning(folder / name, schema, count)
            for (name, schema), count in zip(_TABLES, rows, strict=True)
        ]
        named = partial(with_names, manifest=manifest)
        tables = [
            GrowingTable.resume(folder / name, schema, beginning, named, optional=name in _OPTIONAL)
            for (name, schema), beginning in zip(_TABLES, beginnings, strict=True)
        ]
        write(folder / run_folder.MANIFEST, json_bytes(manifest))
        # They are of a run that has ended, as this one had.
        for name in (run_folder.SUMMARY, *run_folder.PLOTS):
            (folder / name).unlink(missing_ok=True)
        return cls(folder, hold, manifest, tables)

    @property
    def rows(self) -> tuple[int, ...]:
        """How many each table has."""
        return tuple(table.rows for table in self._tables)

    def metrics(self, row: MetricsRow) -> None:
        """Append a row to the metrics."""
        self._metrics.append(row)

    def links(self, row: LinksRow) -> None:
        """Append a row to the links."""
        self._links.append(row)

    def transfers(self, row: TransfersRow) -> None:
        """Append a row to the transfers."""
        self._transfers.append(row)

    def parts(self, row: PartsRow) -> None:
        """Append a row to the parts of messages."""
        self._parts.append(row)

    def queues(self, row: QueuesRow) -> None:
        """Append a row to the queues."""
        self._queues.append(row)

    def membership(self, row: MembershipRow) -> None:
        """Append a row to the membership."""
        self._membership.append(row)

    def classes(self, row: ClassesRow) -> None:
        """Append a row to the classes."""
        self._classes.append(row)

    def flush(self) -> None:
        """Bring every row so far to the disk."""
        for table in self._tables:
            table.flush()

    def finish(self, summary: Mapping[str, Any], *, manifest: Mapping[str, Any] = MappingProxyType({})) -> None:
        """Complete the folder. The manifest's status becomes the summary's: "completed", "interrupted" or "failed".

        `manifest` adds what is known of the run only at its end.
        """
        for table in self._tables:
            table.merge()
        write(self.folder / run_folder.SUMMARY, json_bytes(summary))
        write(self.folder / run_folder.MANIFEST, json_bytes({**self.manifest, **manifest, "status": summary["status"]}))
        self.close()

    def close(self) -> None:
        """Let others write the folder, whatever state it is in."""
        self.hold.close()


def mark(folder: Path, status: Status, **facts: str) -> None:
    """Set the status in the manifest of a run that nobody writes any more, and add what else is known of its end.

    Raises InputError where `folder` holds no run, and OSError where it cannot be written.
    """
    write(folder / run_folder.MANIFEST, json_bytes({**Run.open(folder).manifest, **facts, "status": status}))


def _refuse_unless_free(folder: Path, *, force: bool) -> None:
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InputError("is a file, but a run is a folder", file=folder, allowed="a new or empty folder")
    if run_folder.holds_run(folder):
        if not force:
            resumable = "; it can be resumed with `resume`" * (folder / run_folder.CHECKPOINT).is_file()
            allowed = f"a new or empty folder; `force` replaces that run{resumable}"
            raise InputError("already holds a run", file=folder, allowed=allowed)
    elif any(entry.name != _UNBORN for entry in folder.iterdir()):
        raise InputError("holds other things than a run", file=folder, allowed="a new or empty folder")
