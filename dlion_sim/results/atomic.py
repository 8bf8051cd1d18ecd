"""Files that are there whole or not at all, and JSON that any parser reads."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

TEMPORARY = ".tmp"


@contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """A path beside `file` to write to; it takes the place of `file` when the block ends without an error.

    Afterwards it is on the disk, and outlives a power cut. Raises OSError, which names a file, where it cannot be
    written.
    """
    temporary = file.with_name(file.name + TEMPORARY)
    try:
        with naming(file):
            temporary.unlink(missing_ok=True)  # It could be a link to elsewhere.
            yield temporary
            _sync(temporary)
            os.replace(temporary, file)
            _sync(file.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def naming(file: Path) -> Iterator[None]:
    """Have an OSError in the block, such as of a full disk, name the file where it doesn't."""
    try:
        yield
    except OSError as error:
        if error.filename is not None:
            raise
        raise OSError(error.errno or errno.EIO, error.strerror or str(error), str(file)) from error


def write(file: Path, content: bytes) -> None:
    """Write `content` to `file` in one step."""
    with replacing(file) as temporary:
        temporary.write_bytes(content)


def _sync(path: Path) -> None:
    """Bring a file's content, or a folder's entries, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def json_bytes(value: Mapping[str, Any]) -> bytes:
    """Strict, indented JSON in the given order: NaN and the infinities become null.

    Raises TypeError for a value that JSON has no word for.
    """
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
