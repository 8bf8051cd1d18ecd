"""The file that a page goes to."""

from __future__ import annotations

from pathlib import Path

from dlion_sim.errors import InputError
from dlion_sim.files import opened
from dlion_sim.report.page import MARK
from dlion_sim.results.atomic import write

_ENDINGS = (".html", ".htm")
_BEGINNING = 1000
"""Bytes of a file in which a page says that it is one."""


def check_free(file: Path, *, force: bool = False) -> None:
    """Raise InputError where there is something at `file` which is no such page, unless `force` lets that be replaced.

    Also for a folder, and where there is none to hold the file.
    """
    if file.is_dir():
        raise InputError("is a folder", file=file, allowed="an .html file")
    if file.suffix.lower() not in _ENDINGS:
        raise InputError("is no .html file", file=file, allowed="a page, .html; figures, .pdf too, are of `plot`")
    if not file.parent.is_dir():
        raise InputError("there is no such folder", file=file.parent)
    if file.exists() and not force and not _is_page(file):
        raise InputError("is there already, and is no report", file=file, allowed="another file, or `force`")


def _is_page(file: Path) -> bool:
    with opened(file) as content:
        return MARK.encode() in content.read(_BEGINNING)


def write_page(page: str, file: Path, *, force: bool = False) -> None:
    """Write a page to `file` in one step, in place of an older page. Raises InputError as `check_free`, and OSError."""
    check_free(file, force=force)
    write(file, page.encode())
