"""Files that nobody but their owner may read: a run's secret, and private keys."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from dlion_sim.errors import InputError

_LEAST_BYTES = 16


def read(file: Path) -> bytes:
    """The content of a file. Raises InputError."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=file) from None


def read_private(file: Path) -> bytes:
    """The content of a file that nobody but its owner may read. Raises InputError."""
    content = read(file)
    if file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise InputError("is open to others than its owner", file=file, allowed=f"mode 600: chmod 600 {file}")
    return content


def read_secret(file: Path) -> bytes:
    """The secret in a file that nobody but its owner may read. Raises InputError."""
    secret = read_private(file).strip()
    if len(secret) < _LEAST_BYTES:
        raise InputError(f"holds a secret of {len(secret)} bytes", file=file, allowed=f"{_LEAST_BYTES} or more")
    return secret


def write_secret(file: Path) -> None:
    """Write a fresh secret to a new file that nobody but its owner may read."""
    with open(file, "x", opener=lambda name, flags: os.open(name, flags, 0o600)) as opened:
        opened.write(secrets.token_hex(32))
