"""The folder that an export goes to."""

from __future__ import annotations

from pathlib import Path

from dlion_sim.errors import InputError


def new_folder(folder: Path) -> Path:
    """Make `folder`, or take it as it is where it is empty. Raises InputError for any other."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise InputError("holds other things", file=folder, allowed="a new or empty folder")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=folder) from error
    return folder
