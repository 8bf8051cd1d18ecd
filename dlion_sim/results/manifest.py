"""Where a run was made: what a reader needs to judge it or to make it again."""

from __future__ import annotations

import hashlib
import os
import platform
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

_PACKAGES = (
    *("dlion-sim", "llvmlite", "networkx", "numba", "numpy", "pandas", "pyarrow"),
    *("scikit-learn", "simpy", "torch"),
)
_SOURCE = Path(__file__).parents[1]


def environment() -> dict[str, Any]:
    """This machine and its software now: versions, platform, host name, CPUs, the time (UTC, ISO 8601).

    The versions are those of Python and of the packages that results come from, with a digest of this package's source:
    it tells apart two states of the code that call themselves by one version.
    """
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "hostname": platform.node(),
        "platform": platform.platform(),
        "cpu_count": os.cpu_count(),
        "versions": dict(_versions()),
    }


@cache
def _versions() -> dict[str, str]:
    digest = hashlib.sha256()
    for file in sorted(_SOURCE.rglob("*.py")):
        content = file.read_bytes()
        digest.update(f"{file.relative_to(_SOURCE).as_posix()}\0{len(content)}\0".encode() + content)
    return {
        "python": platform.python_version(),
        **{package.replace("-", "_"): version(package) for package in _PACKAGES},
        "dlion_sim_source": digest.hexdigest()[:16],
    }
