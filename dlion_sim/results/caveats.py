"""Caveats of runs: no exchange, divergence, an early end."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence

from dlion_sim.results.reading import Run
from dlion_sim.results.run_folder import CHECKPOINT


def note(runs: Sequence[Run]) -> str:
    """In words: workers that never applied a peer's contribution, or diverged; runs that did not complete.

    E.g. "no exchange" of all workers, "in part no exchange" of some; empty for sound runs. Workers are those of the
    completed runs, if there are any.
    """
    completed = [run for run in runs if run.manifest["status"] == "completed"]
    measured = completed or runs
    count = sum(len(run.manifest.get("workers", [])) for run in measured)
    workers = {
        "no exchange": sum(len(run.without_exchange) for run in measured),
        "diverged": sum(len((run.summary or {}).get("diverged", [])) for run in measured),
    }
    caveats = [_of(caveat, some, count) for caveat, some in workers.items() if some]
    states = Counter(run.manifest["status"] for run in runs if run.manifest["status"] != "completed")
    return ", ".join([*caveats, *(_of(state, some, len(runs)) for state, some in states.items())])


def early_end(run: Run) -> str:
    """That a run did not end, or was interrupted, and the command that continues it; empty for other runs."""
    ended = {"running": "did not end (killed, or still in progress)", "interrupted": "was interrupted"}
    if (how := ended.get(run.manifest["status"])) is None:
        return ""
    if not (run.folder / CHECKPOINT).is_file():
        return f"{how}; it has no checkpoint to continue from"
    return f"{how}; dlion run --resume {shlex.quote(str(run.folder))} continues it"


def is_representative(noted: str) -> bool:
    """Whether runs with such a `note` are representative of their system."""
    return not any(caveat in noted for caveat in ("no exchange", "diverged"))


def _of(caveat: str, some: int, count: int) -> str:
    return caveat if some == count else f"in part {caveat}"
