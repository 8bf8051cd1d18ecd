"""The state of each run of a sweep, from its folder alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from dlion_sim.errors import InputError
from dlion_sim.results import Run
from dlion_sim.results.parameters import values_by_path
from dlion_sim.results.run_folder import holds_run
from dlion_sim.scenario import Scenario
from dlion_sim.sweep.identity import contents, is_of
from dlion_sim.sweep.points import Point


class State(StrEnum):
    """State of a run."""

    TO_DO = "to do"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    DONE = "done"


_STATES = {"completed": State.DONE, "failed": State.FAILED}
"""Any other status is that of a run that ended early: interrupted, or killed while "running"."""


@dataclass(frozen=True)
class Found:
    """State of a run, and the run."""

    state: State
    run: Run | None
    """None if it is to do."""


def survey(points: Sequence[Point], output: Path) -> dict[str, Found]:
    """The state of each point, by name, from its folder below `output`, while no process writes there.

    Raises InputError for folders that cannot be read, or that have a run of another scenario than the point's.
    """
    found: dict[str, Found] = {}
    faults: list[InputError] = []
    changed: list[tuple[str, str]] = []
    for point in points:
        try:
            found[point.name] = each = _found(point, output / point.name)
            if each.run and not _is_of(point, each.state, each.run):
                changed.append((point.name, _changes(each.run, point)))
        except InputError as fault:
            faults.append(fault)
    if changed:
        name, first = changed[0]
        more_runs = len(changed) - 1
        others = f", and {more_runs} more run{'s' * (more_runs != 1)} with it" if more_runs else ""
        refusal = InputError(
            f"holds a run of another scenario than {name} is now{first}{others}",
            file=output / name,
            allowed="the former scenario, another name, another `output`, or removing such runs",
        )
        faults.insert(0, refusal)
    if faults:
        raise InputError.joined(faults)
    return found


def _found(point: Point, folder: Path) -> Found:
    if not holds_run(folder):
        return Found(State.TO_DO, None)
    run = Run.open(folder)
    return Found(_STATES.get(run.manifest["status"], State.INTERRUPTED), run)


def _is_of(point: Point, state: State, run: Run) -> bool:
    """Whether a run has the point's present scenario, perhaps written differently."""
    # Failed runs are repeated in any case.
    digest = run.manifest.get("sweep", {}).get("digest")
    if state is State.FAILED or digest == point.digest:
        return True
    if digest is None:
        return False  # It is not of a sweep.
    return is_of(run, _complete(point))


def _changes(run: Run, point: Point) -> str:
    return changes(*contents(run, _complete(point)))


def _complete(point: Point) -> Scenario:
    """A point's scenario with a complete system, as its run has it."""
    from dlion_sim.protocol.compose import compose  # imports PyTorch, which a sweep without changes does not need

    scenario = point.scenario()
    return scenario.model_copy(update={"system": compose(scenario.system, scenario.modules).spec})


def changes(former: Any, now: Any) -> str:
    """The first changed values of plain data as text: " (seed was 1, is 2)"; empty without changes."""
    before, after = _flat(former), _flat(now)
    changed = [
        f"{path} was {before.get(path, 'not there')}, is {after.get(path, 'not there')}"
        for path in before | after
        if before.get(path) != after.get(path)
    ]
    return f" ({'; '.join(changed[:3])})" if changed else ""


def _flat(data: Any) -> dict[str, Any]:
    """All scalars but null by dotted path."""
    return {path: value for path, value in values_by_path(data) if not isinstance(value, dict | list | None)}
