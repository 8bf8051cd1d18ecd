"""What `dlion sweep` prints of a search: its space, state and best trials."""

from __future__ import annotations

import json
import math
import os
import shlex
from collections import Counter

from rich.box import HEAVY_HEAD
from rich.console import Console

from dlion_sim.cli.fitting import Fitted
from dlion_sim.results import headings, note
from dlion_sim.scenario.overrides import anchored
from dlion_sim.scenario.shipped import name_of, shipped
from dlion_sim.sweep import Point, Search, metric, space
from dlion_sim.yaml_text import read_yaml

_BEST_SHOWN = 10


def print_space(search: Search) -> None:
    """Print the search space, and the state of the search."""
    rows = [[path, space.described(dimension)] for path, dimension in search.spec.over.items()]
    Console().print(Fitted(["path", "values"], rows, box=HEAVY_HEAD))
    goal = "highest" if metric.direction(search.spec.metric) == "maximize" else "lowest"
    print(f"chosen by {search.spec.sampler} for the {goal} {metric.title(search.spec.metric)}")
    print(counted(search))


def counted(search: Search) -> str:
    """E.g. "20 trials of 2 runs: 7 done, 1 failed, 12 to do"."""
    counts = Counter(str(trial.state) for trial in search.trials)
    counts["to do"] = max(0, search.spec.trials - counts.total())
    states = ", ".join(f"{counts[s]} {s}" for s in ("done", "under way", "failed", "to do") if counts[s])
    trials, runs = search.spec.trials, search.runs_per_trial
    return f"{trials} trial{'s' * (trials != 1)} of {runs} run{'s' * (runs != 1)}: {states}"


def print_best(search: Search) -> None:
    """Print the best trials, and the command that repeats the best one."""
    best = search.best
    over = [heading.replace("_", " ") for heading in headings(search.spec.over).values()]
    rows = [
        [str(trial.number), metric.written(search.spec.metric, value, runs), *trial.labels.values(), note(runs)]
        for value, trial, runs in ((*each, search.runs(each[1])) for each in best[:_BEST_SHOWN])
    ]
    if best:
        columns = ["trial", metric.title(search.spec.metric), *over, "note"]
        kept = len(columns) - (not any(row[-1] for row in rows))
        shown = [row[:kept] for row in rows]
        Console().print(Fitted(columns[:kept], shown, title="The best trials", box=HEAVY_HEAD))
    print(counted(search))
    if best and math.isfinite(best[0][0]):
        first = best[0][1].points[0]
        print(f"the best{'' if search.runs_per_trial == 1 else ', its first run'}: {_command(first)}")


def _command(point: Point) -> str:
    ready = (name_of(file) for file in shipped() if file.samefile(point.base.file))
    base = next(ready, os.path.normpath(point.base.file))
    folder = point.base.file.parent
    values = {path: anchored(value, path.split("."), folder) for path, value in point.values.items()}
    settings = [f"--set {shlex.quote(f'{path}={_as_yaml(value)}')}" for path, value in values.items()]
    return " ".join(["dlion run", shlex.quote(base), *settings])


def _as_yaml(value: object) -> str:
    """A value in a line; text without quotes if it is read as text."""
    return value if isinstance(value, str) and read_yaml(value) == value else json.dumps(value)
