"""Scenarios and sweeps that ship with the project."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path

from dlion_sim.errors import InputError

_PACKAGE = Path(__file__).parents[1]
_INSTALLED, _CHECKOUT = _PACKAGE / "shipped_scenarios", _PACKAGE.parent / "scenarios"
FOLDER = _INSTALLED if _INSTALLED.is_dir() else _CHECKOUT
"""Their folder."""
_SWEEPS = "sweeps"
REPRODUCTION = FOLDER / "reproduction"
"""Sweeps that repeat papers' experiments, and the papers' claims."""
TABLES = REPRODUCTION / "tables"
"""Sweeps for papers' tables of numbers."""
CLAIMS = REPRODUCTION / "claims.yaml"
"""The papers' claims."""


def shipped() -> list[Path]:
    """The files of all shipped scenarios, sorted."""
    others = {_SWEEPS, REPRODUCTION.name}
    return sorted(file for file in FOLDER.rglob("*.yaml") if others.isdisjoint(file.relative_to(FOLDER).parts))


def shipped_sweeps() -> list[Path]:
    """The files of all shipped sweeps except `REPRODUCTION`, sorted."""
    return sorted((FOLDER / _SWEEPS).glob("*.yaml"))


def name_of(file: Path) -> str:
    """The name of a shipped scenario, e.g. "paper/homo_a"."""
    return file.relative_to(FOLDER).with_suffix("").as_posix()


def find(name: str | Path) -> Path:
    """The file of that path or, if there is none, the shipped scenario of that name, e.g. "paper/homo_a".

    Raises:
        InputError: There is neither; with the nearest names.
    """
    return _found(name, shipped(), "scenario", ("any that `scenarios` lists",))


def find_sweep(name: str | Path) -> Path:
    """The file of that path or, if there is none, the shipped sweep of that name, e.g. "sweeps/digits" or
    "reproduction/E6".

    Raises:
        InputError: There is neither; with the nearest names.
    """
    repeated = (file for file in sorted(REPRODUCTION.glob("*.yaml")) if file != CLAIMS)
    return _found(name, [*shipped_sweeps(), *repeated], "sweep")


def _found(name: str | Path, ready: Iterable[Path], kind: str, others: Sequence[str] = ()) -> Path:
    path = Path(name)
    if path.is_file():
        return path
    files = {name_of(file): file for file in ready}
    short = path.as_posix().removeprefix("scenarios/").removesuffix(".yaml")
    # Files of the other kind are refused when they are read.
    files_of_all = {name_of(file): file for file in FOLDER.rglob("*.yaml") if file != CLAIMS}
    if short in files_of_all:
        return files_of_all[short]
    if path.exists():
        return path
    beside = [str(other) for other in path.parent.glob("*.y*ml")]
    near = difflib.get_close_matches(str(path), beside, cutoff=0.8)
    near += difflib.get_close_matches(short, files, cutoff=0.4)
    raise InputError(
        f"no such file, nor a ready {kind} of that name", file=path, allowed=", ".join([*near, *others] or files)
    )
