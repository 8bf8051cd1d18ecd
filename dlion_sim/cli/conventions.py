"""Conventions of the commands: exit codes, wording, and the default folder of runs."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dlion_sim.results import Run

FAILED = 1
BAD_INPUT = 2
DIVERGED = 3
"""Exit code of a run that completed, but in which a worker diverged."""
INTERRUPTED = 130
"""Exit code of an interrupt, as in shells."""
WHY_NO_EXCHANGE = "it says nothing of the system (is the run too short for an exchange?)"
"""Note on a run in which a worker never exchanged anything."""
LIVE_NETWORK = "live: over the network of its hosts, loopback on one host, not the scenario's links"
"""Note on a live run."""
RUNS = Path("results/runs")
_NAMES_SHOWN = 8
_SAME_NAME = (
    "address budget catalog dataset deadline delays device duration force instances listen machines model names output "
    "port rank receivers resume senders systems target x y"
)
_OPTIONS = {
    "addresses": "--peers",
    "overrides": "--set",
    "sites": "--site",
    **{command: f"`dlion {command}`" for command in ("devices", "plot", "run", "scenarios", "sweep")},
    "target_accuracy": "--target-accuracy",
    **{name: f"--{name}" for name in _SAME_NAME.split()},
}
"""Command-line option by argument of the package's functions."""


def some(names: Sequence[str]) -> str:
    """The first names, and the number of others."""
    more = [f"{len(names) - _NAMES_SHOWN} more"] if len(names) > _NAMES_SHOWN else []
    return ", ".join([*names[:_NAMES_SHOWN], *more])


def why_no_exchange(run: Run) -> str:
    """Note on a worker that never exchanged anything, with the system's period if it has one."""
    system = run.scenario.get("system")
    exchange = system.get("exchange") if isinstance(system, dict) else None
    period = exchange.get("period") if isinstance(exchange, dict) else None
    return f"{WHY_NO_EXCHANGE[:-1]} its system exchanges every {period} iterations)" if period else WHY_NO_EXCHANGE


def print_early_ends(runs: Iterable[Run]) -> None:
    """A line on stderr for each run that did not end, with the command that continues it."""
    from dlion_sim.results import early_end

    for run in runs:
        if how := early_end(run):
            print(f"dlion: {run.folder} {how}", file=sys.stderr)


def with_options(fault: str) -> str:
    """The message with arguments, which are in backticks, replaced by options."""
    return re.sub("`(\\w+)`", lambda named: _OPTIONS.get(named[1], named[0]), fault)
