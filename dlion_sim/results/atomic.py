"""Files that are written atomically, and strict JSON."""

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
    """A path beside `file` to write to; it replaces `file` when the block ends without an error, durably.

    Raises OSError, which names a file, if it cannot be written.
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
    """Add the file's name to an OSError in the block that lacks one, e.g. of a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is not None:
            raise
        raise OSError(error.errno or errno.EIO, error.strerror or str(error), str(file)) from error


def write(file: Path, content: bytes) -> None:
    """Write `content` to `file` atomically."""
    with replacing(file) as temporary:
        temporary.write_bytes(content)


def _sync(path: Path) -> None:
    """Write a file's content, or a folder's entries, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def json_bytes(value: Mapping[str, Any]) -> bytes:
    """Strict, indented JSON in the given order: NaN and the infinities become null.

    Raises TypeError for a value that JSON cannot represent.
    """
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
