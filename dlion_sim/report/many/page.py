"""The page of many runs: its sections, and its data (results and curves of groups, incomplete runs)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dlion_sim.analysis import Target, chosen_target, group_runs, metric_name, metric_of, varying, with_own_optimizers
from dlion_sim.analysis.groups import Group, metric_label, note
from dlion_sim.errors import InputError
from dlion_sim.metric import Metric
from dlion_sim.report.many.axes import axes, colouring
from dlion_sim.report.many.curves import curves
from dlion_sim.report.many.outcomes import outcomes, quantities, reached
from dlion_sim.report.page import Section, render
from dlion_sim.results import Run, is_representative, run_names
from dlion_sim.results.numbers import number, of_metric

SECTIONS = (
    Section("overview", "Summary", "overview"),
    Section(
        "outcomes",
        "Results",
        "outcomes",
        "A row is all seeds of a setting: means and 95 % t-intervals. >: a lower bound, as not all seeds reached the "
        "target, or none is completed yet (in italics). A click selects a row in all views.",
    ),
    Section(
        "curves",
        "Metric over time",
        "curves",
        "Means over seeds; up to six lines have bands from the minimum to the maximum over seeds.",
    ),
    Section(
        "coordinates",
        "Parallel coordinates",
        "coordinates",
        "A line is a row of the table. Drag a box on an axis to select the lines through it, with Shift for boxes on "
        "further axes; a double click removes the boxes.",
    ),
    Section(
        "front",
        "Trade-off",
        "front",
        "The line is the Pareto front of the rows shown. Hollow: a bound, as in the table.",
    ),
    Section("unfinished", "Incomplete runs", "unfinished"),
)
SCRIPTS = tuple(f"many/{name}.js" for name in ("scale", "groups", "outcomes", "curves", "coordinates", "front"))
_STATES = ("completed", "running", "interrupted", "failed", "unreadable")


@dataclass(frozen=True)
class Collected:
    """Runs from some folders, and the errors of unreadable ones."""

    folders: tuple[Path, ...]
    runs: tuple[Run, ...]
    faults: Mapping[Path, InputError]

    @classmethod
    def of(cls, folders: Sequence[Path]) -> Collected:
        """The runs in run folders."""
        runs: list[Run] = []
        faults: dict[Path, InputError] = {}
        for folder in folders:
            try:
                runs.append(Run.open(folder))
            except InputError as fault:
                faults[folder] = fault
        return cls(tuple(folders), tuple(runs), faults)


def many_page(collected: Collected, target: float | str | None = None, *, is_served: bool = False) -> str:
    """The HTML of a page of many runs; for `target` see `many_data`, for `is_served` `render`.

    Raises InputError as `many_data`, and if plotly is not installed.
    """
    data = many_data(collected, target)
    return render(data["title"], SECTIONS, data, SCRIPTS, is_served=is_served)


def many_data(collected: Collected, target: float | str | None = None) -> dict[str, Any]:
    """The data of a page of many runs, for JSON.

    For `target` see `chosen_target`; by default there is none if no run is completed. Raises InputError for runs of
    several metrics, for an invalid target, and if a run cannot be read.
    """
    groups = with_own_optimizers(group_runs(collected.runs))
    page: dict[str, Any] = {
        "title": _title(collected),
        "counts": _counts(collected),
        "unfinished": _unfinished(collected),
    }
    if not groups:
        return {**page, "target": "", "groups": [], "axes": [], "colouring": None, "quantities": [], "curves": []}
    metric = metric_of(groups)
    has_target = target is not None or any(group.completed for group in groups)
    chosen = chosen_target(groups, target) if has_target else None
    until = chosen.value if chosen else None
    keys = [*dict.fromkeys([*varying(groups), "system"])]
    found = outcomes(groups, until)
    shown = quantities(groups, found, until)
    score = metric_name(groups)
    return {
        **page,
        "metric": metric_label(groups),
        "target": "" if chosen is None else _target_text(chosen, metric, score),
        "axes": axes(groups),
        "colouring": colouring(groups),
        "quantities": [{"key": each.key, "heading": each.heading, "more": each.more_is_better} for each in shown],
        "groups": [
            {**_about(group, keys), "outcome": {each.key: each.display(one[each.key]) for each in shown}}
            for group, one in zip(groups, found, strict=True)
        ],
        "curves": curves(groups),
    }


def _title(collected: Collected) -> str:
    scenarios = list(dict.fromkeys(str(run.manifest.get("scenario", "")) for run in collected.runs))
    named = ", ".join(scenarios[:3]) + " and others" * (len(scenarios) > 3)
    count = len(collected.folders)
    return " · ".join(filter(None, [named, f"{count} run{'s' * (count != 1)}"]))


def _counts(collected: Collected) -> str:
    """E.g. "20 completed, 1 failed"; empty without runs."""
    counts = Counter(run.manifest["status"] for run in collected.runs)
    counts["unreadable"] = len(collected.faults)
    return ", ".join(f"{counts[state]} {state}" for state in _STATES if counts[state])


def _target_text(target: Target, metric: Metric, score: str) -> str:
    return ", ".join(filter(None, [f"target: {of_metric(target.value, metric)} {score}", target.source]))


def _about(group: Group, keys: Sequence[str]) -> dict[str, Any]:
    """A group's `id`, `name`, `runs`, number of `completed` ones, and `note`.

    `tells` is whether its results are representative of the system, see `dlion_sim.results.is_representative`.
    """
    count, completed, noted = len(group.runs), len(group.completed), note([group])
    return {
        "id": "\n".join(f"{key} {value}" for key, value in group.labels.items()),
        "name": group.named(keys),
        "runs": f"{count}" if count == completed else f"{completed} of {count}",
        "completed": completed,
        "note": noted,
        "tells": is_representative(noted),
    }


def _unfinished(collected: Collected) -> list[dict[str, str]]:
    """The incomplete runs in the order of their folders: `run`, `status`, and `why`, its reason or progress."""
    names = dict(zip(collected.folders, run_names(collected.folders), strict=True)) if collected.folders else {}
    states = {folder: ("unreadable", str(fault)) for folder, fault in collected.faults.items()}
    states |= {
        run.folder: (run.manifest["status"], _why(run))
        for run in collected.runs
        if run.manifest["status"] != "completed"
    }
    return [
        {"run": names[folder], "status": states[folder][0], "why": states[folder][1]}
        for folder in collected.folders
        if folder in states
    ]


def _why(run: Run) -> str:
    if problem := run.manifest.get("problem"):
        return str(problem)
    if run.manifest["status"] == "failed" and run.summary:
        return str(run.summary.get("stopped_by", ""))
    duration = run.scenario.get("duration")
    return f"at {number(reached(run))} s" + (f" of {duration}" if duration else "")
