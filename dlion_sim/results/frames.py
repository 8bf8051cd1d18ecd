"""Many runs as tidy pandas tables, whose first columns identify the run of each row."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from dlion_sim.metric import ACCURACY
from dlion_sim.results.labels import headings, note
from dlion_sim.results.parameters import Settings, differing
from dlion_sim.results.reading import Run
from dlion_sim.results.run_folder import find_runs, run_names

_OF_EVALUATIONS = [
    *("virtual_time", "wall_time", "worker", "worker_name", "worker_cloud", "iteration", "loss", "accuracy"),
]


@dataclass(frozen=True)
class Frames:
    """Some runs' tables, each read at first use. Raises InputError for a run that cannot be read.

    Every table begins with the columns `run` (its folder below the one that holds all), `scenario`, `system` (with
    replaced settings), `seed`, and a column for each setting in which the runs differ, see `differing`, named by the
    end of its path. Times are in seconds, accuracies fractions.
    """

    runs: tuple[Run, ...]

    @classmethod
    def of(cls, paths: Iterable[Path]) -> Frames:
        """All runs at or below the paths. Raises InputError for a path with none."""
        return cls(tuple(map(Run.open, find_runs(paths))))

    @cached_property
    def summaries(self) -> pd.DataFrame:
        """A row per run: how it ended, its iterations, traffic, cost, accuracy, and time to each accuracy.

        `accuracy` is of the last evaluation, `final_accuracy` the mean of the last few, and `full_accuracy` of one at
        the end on all samples, if evaluations are on fewer. For a task with another metric, `metric`, `metric_std`,
        `final_metric` and `full_metric` replace them.

        `time_to_0.9` and so on is NaN if that accuracy was never reached, or already by the untrained model (up to
        `reached_untrained`). It was reached between the evaluations at `not_before_0.9` and `time_to_0.9`.

        `note` has a run's caveats: no exchange, diverged, not completed. A run in progress has no other values.
        """
        rows = [{**_summary(run), "note": note([run])} for run in self.runs]
        about = self._about(column for row in rows for column in row)
        return pd.DataFrame([{**first, **row, **first} for first, row in zip(about, rows, strict=True)])

    @cached_property
    def evaluations(self) -> pd.DataFrame:
        """A row per evaluation of a worker: `virtual_time`, `worker`, `iteration`, `loss` and `accuracy`, ...

        `evaluated_on` is the set: "test" or "validation". If a task has another metric than accuracy, there are also
        the columns `metric` and `metric_name`.
        """
        others = any(run.metric != ACCURACY for run in self.runs)

        def read(run: Run) -> pd.DataFrame:
            evaluations = run.evaluations()
            table = evaluations[_OF_EVALUATIONS].assign(evaluated_on=run.evaluated_on)
            return table.assign(metric=evaluations[run.metric.key], metric_name=run.metric.name) if others else table

        return self._all(read)

    @cached_property
    def iterations(self) -> pd.DataFrame:
        """A row per iteration of a worker: `virtual_time` of its end, training `loss`, `batch_size`, waiting, ..."""
        return self._all(lambda run: run.iterations().drop(columns=["kind", "accuracy", "metric"]))

    @cached_property
    def links(self) -> pd.DataFrame:
        """A row per interval of a directed link: `virtual_time` of its end, `sender`, `receiver`, `bytes`, N, ...

        `wan_bytes` are the bytes of links between micro-clouds, and 0 elsewhere.
        """
        return self._all(Run.links)

    @cached_property
    def transfers(self) -> pd.DataFrame:
        """A row per message, if recorded: `begin` and `end`, `sender`, `receiver`, `kind`, `bytes`, ..."""
        return self._all(Run.transfers)

    @cached_property
    def parts(self) -> pd.DataFrame:
        """A row per message and part of it, with bounded loss: `variable`, `large`, `bytes`, `lost_bytes`, ..."""
        return self._all(Run.parts)

    @cached_property
    def queues(self) -> pd.DataFrame:
        """A row per interval of a simulated link's queue: `port`, `mean_queued`, `dropped`, `marked`, ..."""
        return self._all(Run.queues)

    @cached_property
    def membership(self) -> pd.DataFrame:
        """A row per change of availability or membership: `participant`, `what`, `peer`, `seconds`, ..."""
        return self._all(Run.membership)

    @cached_property
    def arrivals(self) -> pd.DataFrame:
        """A row per worker and iteration of a stream: number of arrivals (`batch_size`), `accuracy`, ..."""
        return self._all(lambda run: run.arrivals().drop(columns=["kind", "metric"]))

    @cached_property
    def classes(self) -> pd.DataFrame:
        """A row per evaluation of a worker and class, of a stream: `label`, its `share`, `samples`, `accuracy`."""
        return self._all(Run.classes)

    def _about(self, taken: Iterable[str]) -> list[dict[str, Any]]:
        """The first columns by run; no setting gets the name of a column that is `taken`."""
        names = run_names([run.folder for run in self.runs])
        paths = dict.fromkeys(path for settings in self._settings for path in settings)
        called = headings(paths, {*taken, "run", "scenario", "system", "seed"})
        return [
            {
                "run": name,
                "scenario": run.manifest.get("scenario"),
                "system": run.system,
                "seed": run.manifest.get("seed"),
                **{called[path]: settings.get(path) for path in paths},
            }
            for name, run, settings in zip(names, self.runs, self._settings, strict=True)
        ]

    @cached_property
    def _settings(self) -> list[Settings]:
        return differing(self.runs)

    def _all(self, read: Callable[[Run], pd.DataFrame]) -> pd.DataFrame:
        tables = [read(run) for run in self.runs]
        columns = dict.fromkeys(column for table in tables for column in table.columns)
        for about, table in zip(self._about(columns), tables, strict=True):
            for place, (column, value) in enumerate(about.items()):
                table.insert(place, column, value)
        # pandas warns about empty tables, whose columns may have other types.
        return pd.concat([table for table in tables if len(table)] or tables[:1], ignore_index=True)


def _summary(run: Run) -> dict[str, Any]:
    row: dict[str, Any] = {"status": run.manifest["status"]}
    if run.metric != ACCURACY:
        row["metric_name"] = run.metric.name
    if run.summary is None:
        return row
    for key, value in run.summary.items():
        match key, value:
            case "time_to_accuracy" | "time_to_metric", dict():
                # A number in every row: a column of None alone would be one of objects.
                row |= {f"time_to_{target}": seconds or math.nan for target, seconds in value.items()}
                untrained = [float(target) for target, seconds in value.items() if seconds == 0]
                row["reached_untrained"] = run.metric.best(untrained) if untrained else math.nan
            case "not_before", dict():
                row |= {f"not_before_{target}": seconds for target, seconds in value.items()}
            case "accuracy" | "metric" | "full_accuracy" | "full_metric", dict():
                row |= {key: value["mean"], f"{key}_std": value.get("std")}
            case "transport", dict():
                row |= {f"{name}_share": value[name] for name in ("lost", "resent", "saved")}
                row |= {f"completion_{name}": seconds for name, seconds in value["completion"].items()}
            case "stream", dict():
                row |= {name: value[name] for name in ("scored", "online_accuracy", "forgetting")}
                row |= {f"adaptation_{label}": seconds for label, seconds in value["adaptation"].items()}
            case "bytes_sent", _:
                row |= {"wan_bytes": run.wan_bytes, "bytes_sent": value}
            case "iterations" | "exchanges" | "final_accuracy" | "final_metric", dict():
                row[key] = value["mean"]
            case "availability", dict():
                up, computed = value.get("up"), value.get("computed")
                row["up_share"] = sum(up) / len(up) if up else None
                row["useful_share"] = value.get("useful", 0) / computed if computed else None
                row |= {name: value.get(name, {}).get("mean") for name in ("to_notice", "to_join")}
            case "cost", dict():
                row["cost"] = value["total"]
                row |= {name: value[name] for name in ("energy_kwh", "co2_kg") if name in value}
            case "scenario" | "system" | "system_label" | "seed" | "status" | "diverged" | "spent", _:
                pass
            case _:
                row[key] = value
    return row
