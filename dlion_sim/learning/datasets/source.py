"""Where a dataset's published files come from: a local copy, else a download. Each is checked before use."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pooch
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

from dlion_sim.errors import InputError


@dataclass(frozen=True)
class Source:
    """The published files of a dataset.

    `md5` gives each file's name and checksum. A local copy lies in `$DLION_DATA/folder`. `url` is the web folder of the
    files, or, where `archive_md5` is given, the tarball that holds them under `folder`.
    """

    folder: str
    md5: Mapping[str, str]
    url: str
    archive_md5: str | None = None

    def read(self) -> dict[str, bytes]:
        """The bytes of each file, from the local copy if there is one, else from the download cache, filled if need be.

        Raises InputError where DLION_DATA is no folder, the download fails, or a file is missing or differs from the
        published one.
        """
        folder = self._local() or self._downloaded()
        return {name: _verified(folder / name, md5) for name, md5 in self.md5.items()}

    def _local(self) -> Path | None:
        if (root := os.environ.get("DLION_DATA")) is None:
            return None
        if not Path(root).is_dir():
            raise InputError(f"DLION_DATA is {root!r}, which is not a folder", path="dataset")
        folder = Path(root, self.folder)
        return folder if folder.is_dir() else None

    def _downloaded(self) -> Path:
        cache = Path(pooch.os_cache("dlion-sim"))
        try:
            if self.archive_md5:
                members = [f"{self.folder}/{name}" for name in self.md5]
                _retrieve(self.url, self.archive_md5, cache, pooch.Untar(members, extract_dir="."))
            else:
                for name, md5 in self.md5.items():
                    _retrieve(f"{self.url}/{name}", md5, cache / self.folder)
        except (
            OSError,
            ValueError,
        ) as error:  # requests' errors are OSErrors; pooch raises ValueError for a wrong checksum
            raise InputError(
                f"{self.url} cannot be downloaded ({type(error).__name__}); "
                f"set DLION_DATA to a folder that holds {self.folder}/ with {', '.join(self.md5)}",
                path="dataset",
            ) from error
        return cache / self.folder


def _verified(file: Path, md5: str) -> bytes:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", file=file) from error
    found = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if found != md5:
        raise InputError(f"is truncated or altered: {len(content)} bytes, md5 {found}, expected md5 {md5}", file=file)
    return content


def _retrieve(url: str, md5: str, folder: Path, processor: pooch.Untar | None = None) -> None:
    name = url.rpartition("/")[2]
    columns = ("{task.description}", BarColumn(), DownloadColumn(), TimeRemainingColumn())
    quiet = pooch.get_logger().disabled  # Else pooch says, too, that it downloads.
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=quiet) as progress:
        downloader = pooch.HTTPDownloader(progressbar=_ProgressBar(progress, name))
        pooch.retrieve(url, f"md5:{md5}", name, folder, processor, downloader)


class _ProgressBar:
    """The progress bar that pooch asks for, drawn by rich."""

    total = 0

    def __init__(self, progress: Progress, name: str) -> None:
        self._progress = progress
        self._task = progress.add_task(name, total=None)

    def update(self, size: int) -> None:
        self._progress.update(self._task, advance=size, total=self.total)

    def reset(self) -> None:
        self._progress.reset(self._task)

    def close(self) -> None:
        self._progress.stop_task(self._task)
