"""Files that may come from anybody: only regular ones are opened, and none is read that is larger than it can be."""

from __future__ import annotations

import errno
import gzip
import io
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from dlion_sim.errors import InputError

SCENARIO, MANIFEST = "scenario.yaml", "manifest.json"
"""The two files that every run folder has."""


@contextmanager
def opened(file: Path) -> Iterator[BinaryIO]:
    """The file, for reading, as long as the block lasts.

    Raises InputError where there is none or it cannot be opened, and for what is no regular file: a pipe would be
    waited on for ever.
    """
    try:
        # A pipe without a writer opens at once then.
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        raise InputError("is missing", file=file) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=file) from None
    except ValueError as error:  # No file has such a name.
        raise InputError(f"cannot be read: {error}", file=file) from None
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        problem = os.strerror(errno.EISDIR) if stat.S_ISDIR(mode) else "it is no regular file"
        raise InputError(f"cannot be read: {problem}", file=file)
    with open(descriptor, "rb") as content:
        yield content


def read_bytes(file: Path, most: int) -> bytes:
    """All of the file. Raises InputError as `opened` does, and for one of more than `most` bytes."""
    with opened(file) as content:
        size = os.fstat(content.fileno()).st_size
        if size > most:
            raise InputError(f"holds {size / 1e6:.1f} MB, which is too much", file=file, allowed=f"{most / 1e6:g} MB")
        try:
            return content.read(most)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", file=file) from None


def read_unpacked(file: Path, most: int) -> bytes:
    """The same of a file that may be compressed (.gz), of which `most` also limits the content."""
    content = read_bytes(file, most)
    if file.suffix != ".gz":
        return content
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as packed:
            content = packed.read(most + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"cannot be read: {error}", file=file) from None
    if len(content) > most:
        raise InputError("is too large once it is unpacked", file=file, allowed=f"{most / 1e6:g} MB")
    return content
