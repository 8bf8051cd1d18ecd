"""What speaks against taking runs at their word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dlion_sim.results.reading import Run


def note(runs: Sequence[Run]) -> str:
    """In words: that workers never took in anything from a peer, or diverged, or that a run did not complete.

    E.g. "no exchange" where that is so of all workers, else "in part no exchange"; nothing of sound runs. What of some
    runs did complete is told of these alone.
    """
    completed = [run for run in runs if run.manifest["status"] == "completed"]
    measured = completed or runs
    everybody = sum(len(run.manifest.get("workers", [])) for run in measured)
    workers = {
        "no exchange": sum(len(run.without_exchange) for run in measured),
        "diverged": sum(len((run.summary or {}).get("diverged", [])) for run in measured),
    }
    told = [_of(what, count, everybody) for what, count in workers.items() if count]
    states = Counter(run.manifest["status"] for run in runs if run.manifest["status"] != "completed")
    return ", ".join([*told, *(_of(state, count, len(runs)) for state, count in states.items())])


def tells(noted: str) -> bool:
    """Whether what such runs came to says something of their system, by what is noted on them."""
    return not any(what in noted for what in ("no exchange", "diverged"))


def _of(what: str, count: int, everybody: int) -> str:
    return what if count == everybody else f"in part {what}"
