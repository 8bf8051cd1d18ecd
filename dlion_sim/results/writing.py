"""Writing a run folder during the run, and its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from dlion_sim.errors import InputError
from dlion_sim.results import growing_table, run_folder
from dlion_sim.results.atomic import TEMPORARY, json_bytes, write
from dlion_sim.results.growing_table import GrowingTable
from dlion_sim.results.json_document import check
from dlion_sim.results.manifest import Manifest
from dlion_sim.results.reading import Run
from dlion_sim.results.run_folder import FolderLock
from dlion_sim.results.summary import Status
from dlion_sim.results.tables import TABLES, Row

_UNBORN = run_folder.MANIFEST + TEMPORARY
"""The only file of a run that was killed before it had its manifest."""


class RunWriter:
    """The only writer of a run folder: `create` makes both, `resume` a new writer of an old folder.

    Rows are written to disk in groups, at the latest with a row that is appended 10 s after the last flush. Until
    `finish`, the run's status is "running", and no other process can write the folder.
    """

    def __init__(
        self, folder: Path, hold: FolderLock, manifest: Mapping[str, Any], tables: Sequence[GrowingTable[Any]]
    ) -> None:
        self.folder = folder
        self.hold = hold
        self.manifest = manifest
        self._tables: dict[type, GrowingTable[Any]] = {
            table.row: growing for table, growing in zip(TABLES, tables, strict=True)
        }

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
        """Start a run in `folder`, which must be new or empty; `force` replaces the run in it.

        `hold` is the caller's lock of the folder, if it has one; the manifest's "status" is set here. If the folder
        cannot be used, raises InputError and leaves nothing behind.
        """
        running = json_bytes({**manifest, "status": "running"})
        check(msgspec.json.decode(running), Manifest, folder / run_folder.MANIFEST)
        try:
            _refuse_unless_free(folder, force=force)
            with ExitStack() as undo:
                for missing in [path for path in (folder, *folder.parents) if not path.exists()][::-1]:
                    _make(missing, undo)
                hold = hold or FolderLock(folder)
                undo.callback(hold.close)
                _refuse_unless_free(folder, force=force)  # Another process may have been faster.
                undo.callback(run_folder.clear, folder)
                run_folder.clear(folder)
                write(folder / run_folder.MANIFEST, running)
                write(folder / run_folder.SCENARIO, scenario_yaml.encode())
                tables = [GrowingTable(folder, table, manifest) for table in TABLES]
                undo.pop_all()
        except OSError as error:
            raise InputError(
                f"cannot be written: {error.strerror}", file=folder, allowed="a folder where you may write"
            ) from error
        return cls(folder, hold, manifest, tables)

    @classmethod
    def resume(cls, folder: Path, hold: FolderLock, rows: Sequence[int], **facts: Any) -> RunWriter:
        """Continue the run in `folder`, which the caller holds, after so many rows of each table, see `rows`.

        `facts` are added to its manifest. Raises InputError, with nothing changed, if there are fewer rows, and OSError
        if the folder cannot be written.
        """
        manifest = {**Run.open(folder).manifest, **facts, "status": "running"}
        beginnings = [
            growing_table.find_beginning(folder / table.file, table.schema, count)
            for table, count in zip(TABLES, rows, strict=True)
        ]
        tables = [
            GrowingTable.resume(folder, table, manifest, beginning)
            for table, beginning in zip(TABLES, beginnings, strict=True)
        ]
        write(folder / run_folder.MANIFEST, json_bytes(manifest))
        # Those of the run's former end.
        for name in (run_folder.SUMMARY, *run_folder.PLOTS):
            (folder / name).unlink(missing_ok=True)
        return cls(folder, hold, manifest, tables)

    @property
    def rows(self) -> tuple[int, ...]:
        """The number of rows of each of `TABLES`."""
        return tuple(table.rows for table in self._tables.values())

    def append(self, row: Row) -> None:
        """Add a row to the table of its class."""
        self._tables[type(row)].append(row)

    def note(self, **facts: Any) -> None:
        """Add facts to the manifest, on the disk, too. Raises OSError."""
        self.manifest = {**self.manifest, **facts}
        write(self.folder / run_folder.MANIFEST, json_bytes({**self.manifest, "status": "running"}))

    def flush(self) -> None:
        """Write every row so far to the disk."""
        for table in self._tables.values():
            table.flush()

    def finish(self, summary: Mapping[str, Any], *, manifest: Mapping[str, Any] = MappingProxyType({})) -> None:
        """Complete the folder. The manifest's status becomes the summary's: "completed", "interrupted" or "failed".

        `manifest` is added to the run's, with facts that are known only at its end.
        """
        for table in self._tables.values():
            table.merge()
        write(self.folder / run_folder.SUMMARY, json_bytes(summary))
        write(self.folder / run_folder.MANIFEST, json_bytes({**self.manifest, **manifest, "status": summary["status"]}))
        self.close()

    def close(self) -> None:
        """Release the folder, in whatever state."""
        self.hold.close()


def mark(folder: Path, status: Status, **facts: str) -> None:
    """Set the status in the manifest of a run that no process writes any more, and add `facts` of its end.

    Raises InputError if `folder` holds no run, and OSError if it cannot be written.
    """
    write(folder / run_folder.MANIFEST, json_bytes({**Run.open(folder).manifest, **facts, "status": status}))


def _make(folder: Path, undo: ExitStack) -> None:
    """Make a folder, unless another run beside this one has just made it; undone only while it is empty."""
    try:
        folder.mkdir()
    except FileExistsError:
        if not folder.is_dir():
            raise
    else:
        undo.callback(_remove_if_empty, folder)


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


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
