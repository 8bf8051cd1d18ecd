"""Reading a run folder: of a finished run, one in progress, or a killed one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from dlion_sim.errors import InputError
from dlion_sim.metric import Metric
from dlion_sim.results import growing_table, run_folder
from dlion_sim.results.checking import checked
from dlion_sim.results.json_document import read_json
from dlion_sim.results.labels import system_label
from dlion_sim.results.manifest import EvaluatedOn, Manifest
from dlion_sim.results.places import clouds_of, with_names, with_wan_bytes
from dlion_sim.results.summary import Summary
from dlion_sim.results.tables import (
    CLASSES,
    LINKS,
    MEMBERSHIP,
    METRICS,
    PARTS,
    QUEUES,
    TRANSFERS,
    MetricsKind,
    R,
    Table,
)
from dlion_sim.yaml_text import read_file, read_text

_ALWAYS = (METRICS, LINKS)
"""The tables of every run: early ones had no others."""
_STATES_TARGET = re.compile(r"^target(_accuracy)?:", re.MULTILINE)
_CLUSTER = re.compile(r"^cluster:.*\n(?:[ -].*\n)*", re.MULTILINE)
_SEED_OR_PLACE = re.compile(r"^(seed|modules): .*\n", re.MULTILINE)


@dataclass(frozen=True)
class Run:
    """A run folder, which may come from anybody: all that is read is checked, and faults are InputErrors.

    Tables are read at each call. An integer column with nulls has floats and NaN in pandas.
    """

    folder: Path
    manifest: dict[str, Any]
    """See `Manifest`; access to a missing key raises InputError."""
    summary: dict[str, Any] | None
    """See `Summary`, like the manifest; None if the run did not finish."""

    @classmethod
    def open(cls, folder: Path) -> Run:
        """The run in `folder`. Raises InputError if that is not a run folder, or a file cannot be read."""
        if not run_folder.holds_run(folder):
            raise InputError("is not a run folder", file=folder, allowed=f"a folder that holds a {run_folder.MANIFEST}")
        manifest = read_json(folder / run_folder.MANIFEST, Manifest)
        summary = folder / run_folder.SUMMARY
        ended = manifest["status"] == "completed" or summary.exists()
        return cls(folder, manifest, read_json(summary, Summary) if ended else None)

    @cached_property
    def scenario(self) -> dict[str, Any]:
        """The resolved scenario as plain data. Raises InputError if it cannot be read."""
        file = self.folder / run_folder.SCENARIO
        scenario = read_file(file)
        if not isinstance(scenario, dict):
            raise InputError("holds no mapping of a scenario's keys", file=file)
        return scenario

    @cached_property
    def apart_from_seed(self) -> str:
        """The resolved scenario's text without seed and modules; equal for equal scenarios.

        Raises InputError if it cannot be read.
        """
        return _SEED_OR_PLACE.sub("", read_text(self.folder / run_folder.SCENARIO))

    @property
    def cluster(self) -> str:
        """The resolved text of machines and network; equal for equal clusters."""
        found = _CLUSTER.search(self.apart_from_seed)
        return found.group() if found else ""

    @property
    def target(self) -> float | None:
        """The scenario's target, in the unit of the metric. Raises InputError if it cannot be read."""
        if not _STATES_TARGET.search(self.apart_from_seed):
            return None  # in most runs; parsing all of it takes long
        for key in ("target_accuracy", "target"):
            if (target := self.scenario.get(key)) is not None:
                if not isinstance(target, int | float):
                    raise InputError(f"{target!r} is no number", file=self.folder / run_folder.SCENARIO, path=key)
                return float(target)
        return None

    @property
    def outcome(self) -> Mapping[str, Any]:
        """The summary. Raises InputError if the run did not finish."""
        if self.summary is None:
            raise InputError("is missing", file=self.folder / run_folder.SUMMARY)
        return self.summary

    @property
    def point(self) -> dict[str, str]:
        """The run's values of a sweep's axes, as texts by axis; empty outside a sweep."""
        point: dict[str, str] = self.manifest.get("sweep", {}).get("point", {})
        return point

    @property
    def system(self) -> str:
        """Its system's label: "dlion", or "dlion, weights share" if that is replaced."""
        return system_label(self.manifest)

    @property
    def without_exchange(self) -> list[str]:
        """The workers, by name, that never applied a peer's contribution, if there are peers; empty for old runs.

        Where a server samples them, only if none did.
        """
        workers: list[str] = self.manifest.get("workers", [])
        counts = (self.summary or {}).get("exchanges", {}).get("per_worker", [])
        if self.evaluates_server and any(counts):
            return []
        return [worker for worker, count in zip(workers, counts, strict=False) if count == 0 and len(workers) > 1]

    @property
    def diverged(self) -> list[str]:
        """The workers, by name, whose training diverged."""
        names: list[str] = self.manifest.get("workers", [])
        return [names[worker] for worker in (self.summary or {}).get("diverged", []) if worker < len(names)]

    @property
    def is_virtual(self) -> bool:
        """Whether its time is virtual, not real."""
        return bool(self.manifest.get("way", "simulate") == "simulate")

    @property
    def metric(self) -> Metric:
        """The metric of its evaluations; its `key` is the name of their column, and part of the summary's keys."""
        return Metric.of(self.manifest)

    @property
    def plot(self) -> Path:
        """The file of the figure of its metric over time."""
        return self.folder / f"{self.metric.key}.png"

    @property
    def evaluated_on(self) -> EvaluatedOn:
        """The set of its evaluations."""
        evaluated_on: EvaluatedOn = self.manifest.get("evaluated_on", "test")
        return evaluated_on

    @property
    def evaluates_server(self) -> bool:
        """Whether its evaluations are of a server's parameters, in place of the workers'."""
        return "evaluated_server" in self.manifest

    @property
    def is_evaluated_in_part(self) -> bool:
        """Whether its evaluations are on some of the samples."""
        samples = self.manifest.get("evaluation_samples")
        return samples is not None and samples["curve"] < samples["full"]

    @property
    def has_wan(self) -> bool:
        """Whether its participants are in several micro-clouds."""
        return len({*clouds_of(self.manifest)}) > 1

    @cached_property
    def wan_bytes(self) -> int:
        """Bytes between micro-clouds, from the summary, or from the links if it lacks them."""
        total: int | None = (self.summary or {}).get("wan_bytes")
        if total is None:
            return int(self.links()["wan_bytes"].sum()) if self.has_wan else 0
        return total

    def metrics(self) -> pd.DataFrame:
        """All rows of `METRICS`. This and all tables below raise InputError if they cannot be read."""
        return self._frame(METRICS)

    def links(self) -> pd.DataFrame:
        """All rows of `LINKS`, with `wan_bytes`."""
        return with_wan_bytes(self._frame(LINKS))

    def transfers(self) -> pd.DataFrame:
        """All rows of `TRANSFERS`; empty, as all tables below, if the run has none."""
        return self._frame(TRANSFERS)

    def parts(self) -> pd.DataFrame:
        """All rows of `PARTS`."""
        return self._frame(PARTS)

    def queues(self) -> pd.DataFrame:
        """All rows of `QUEUES`."""
        return self._frame(QUEUES)

    def membership(self) -> pd.DataFrame:
        """All rows of `MEMBERSHIP`."""
        return self._frame(MEMBERSHIP)

    def classes(self) -> pd.DataFrame:
        """All rows of `CLASSES`."""
        return self._frame(CLASSES)

    def arrivals(self) -> pd.DataFrame:
        """The metrics' rows of a stream's arrivals."""
        return self._of_kind("arrivals")

    def evaluations(self) -> pd.DataFrame:
        """The metrics' rows of evaluations."""
        return self._of_kind("evaluation")

    def iterations(self) -> pd.DataFrame:
        """The metrics' rows of iterations."""
        return self._of_kind("iteration")

    def rows(self, table: Table[R]) -> list[R]:
        """All rows of a table, as they were written."""
        content = self._content(table)
        self._checked(content, table)
        return [table.row(**row) for row in content.to_pylist()]

    def _of_kind(self, kind: MetricsKind) -> pd.DataFrame:
        metrics = self.metrics()
        return metrics[metrics["kind"] == kind].reset_index(drop=True)

    def _frame(self, table: Table[Any]) -> pd.DataFrame:
        return self._checked(with_names(self._content(table), self.manifest), table)

    def _content(self, table: Table[Any]) -> pa.Table:
        file = self.folder / table.file
        if table not in _ALWAYS and not growing_table.exists(file):
            return table.schema.empty_table()
        return growing_table.read(file, table.schema)

    def _checked(self, content: pa.Table, table: Table[Any]) -> pd.DataFrame:
        workers, servers = self.manifest.get("workers"), len(self.manifest.get("servers", []))
        return checked(content, table, self.folder / table.file, None if workers is None else len(workers), servers)
