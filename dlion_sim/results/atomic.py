"""Files that are there whole or not at all, and JSON that any parser reads."""

from __future__ import annotations

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

    Afterwards it is on the disk, and outlives a power cut.
    """
    temporary = file.with_name(file.name + TEMPORARY)
    try:
        yield temporary
        _sync(temporary)
        os.replace(temporary, file)
        _sync(file.parent)
    finally:
        temporary.unlink(missing_ok=True)


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
