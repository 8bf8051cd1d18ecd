"""Where a run was made: what a reader needs to judge it or to make it again."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

_PACKAGES = ("dlion-sim", "numpy", "pandas", "pyarrow", "scikit-learn", "simpy", "torch")


def environment() -> dict[str, Any]:
    """This machine and its software now: versions by package, platform, host name, CPUs, the time (UTC, ISO 8601)."""
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "hostname": platform.node(),
        "platform": platform.platform(),
        "cpu_count": os.cpu_count(),
        "versions": {
            "python": platform.python_version(),
            **{package.replace("-", "_"): version(package) for package in _PACKAGES},
        },
    }
