"""What the commands have in common: exit codes, words, and where runs go."""

from __future__ import annotations

import re
from pathlib import Path

FAILED = 1
BAD_INPUT = 2
INTERRUPTED = 130
"""By which shells tell an interrupt."""
WHY_NO_EXCHANGE = "it says nothing of the system (is the period of local_sgd or diloco longer than the run?)"
"""Of a run in which a worker never exchanged anything."""
RUNS = Path("results/runs")
_SAME_NAME = (
    "address",
    "catalog",
    "delays",
    "device",
    "force",
    "instances",
    "names",
    "output",
    "port",
    "rank",
    "receivers",
    "senders",
    "target",
    "x",
    "y",
)
_OPTIONS = {
    "addresses": "--peers",
    "overrides": "--set",
    "scenarios": "`dlion scenarios`",
    "target_accuracy": "--target-accuracy",
    **{name: f"--{name}" for name in _SAME_NAME},
}
"""By which an argument of the package's functions is given."""


def with_options(fault: str) -> str:
    """What is wrong, by the names of options where it names arguments, which stand in backticks."""
    return re.sub("`(\\w+)`", lambda named: _OPTIONS.get(named[1], named[0]), fault)
