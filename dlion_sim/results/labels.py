"""Labels of systems, scenarios and settings in tables and figures, and notes on runs: no exchange, an early end, ..."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dlion_sim.results.run_folder import CHECKPOINT

if TYPE_CHECKING:
    from dlion_sim.results.reading import Run


def headings(paths: Iterable[str], taken: Collection[str] = ()) -> dict[str, str]:
    """The column name of each path: its shortest end that is unique and not `taken`, e.g. "bandwidth"."""
    dotted = [f".{path}" for path in paths]
    named = {}
    for path in dotted:
        parts = path[1:].split(".")
        ends = [".".join(parts[-count:]) for count in range(1, len(parts) + 1)]
        names = [end for end in ends if not end.split(".")[0].isdecimal() and end not in taken]
        own = [end for end in names if sum(each.endswith(f".{end}") for each in dotted) == 1]
        named[path[1:]] = own[0] if own else path[1:]
    return named


def in_words(path: str, value: str) -> str:
    """A setting, e.g. "bandwidth 20 Mbps" for that value of "cluster.wan.bandwidth"."""
    return f"{last_words(path)} {value}"


def last_words(path: str) -> str:
    """The end of a path that names it, e.g. "learning rate"; "clouds 4" of an entry of a list."""
    parts = path.split(".")
    named = next((place for place in reversed(range(len(parts))) if not parts[place].isdecimal()), 0)
    return " ".join(parts[named:]).replace("_", " ")


def system_label(manifest: Mapping[str, Any], stated: Collection[str] = ()) -> str:
    """The name of the run's system and the settings replaced in it, e.g. "dlion, weights share".

    Settings at or below the paths `stated` are omitted.
    """
    replaced = replaced_settings(manifest, stated)
    return ", ".join([str(manifest.get("system", "")), *(in_words(path, value) for path, value in replaced.items())])


def scenario_label(manifest: Mapping[str, Any]) -> str:
    """The name of the run's scenario, and the size of the model whose cost was charged, if not the trained one's."""
    cost_as = manifest.get("cost_as")
    name = str(manifest.get("scenario", ""))
    return f"{name}, charged as {cost_as['parameters']} parameters" if cost_as else name


def replaced_settings(manifest: Mapping[str, Any], stated: Collection[str] = ()) -> dict[str, str]:
    """The settings replaced in the run's system by path below `system`, except at or below the paths `stated`."""
    replaced: dict[str, str] = manifest.get("replaced", {})
    return {
        path: value
        for path, value in replaced.items()
        if not any(f"system.{path}.".startswith(f"{each}.") for each in stated)
    }


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
