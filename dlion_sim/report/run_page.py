"""The page of one run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from dlion_sim.files import read_bytes
from dlion_sim.report.headline import headline
from dlion_sim.report.lines import lines_of, metric_over
from dlion_sim.report.links import links_over
from dlion_sim.report.page import Section, render
from dlion_sim.report.timeline import timeline
from dlion_sim.results import Run, scenario_label
from dlion_sim.results.run_folder import SCENARIO
from dlion_sim.scenario.faults import listed
from dlion_sim.yaml_text import MOST_BYTES

SCRIPTS = (
    "run/headline.js",
    "run/brush.js",
    "run/metric.js",
    "run/timeline.js",
    "run/links.js",
    "run/map.js",
    "run/lines.js",
    "run/partition.js",
    "run/provenance.js",
)

_MAX_OWNERS = 4
"""The most owners of a worker that are named."""
_MAX_LETTERS = 200
_COMMANDS = {"simulate": "run", "live": "live", "emulate": "emulate"}
"""By the manifest's `way`."""
_FACTS = ("seed", "way", "device", "device_name", "kernels", "started", "platform", "cpu_count")

SECTIONS = (
    Section("summary", "Summary", "headline"),
    Section("time", "Time range", "brush"),
    Section(
        "metric",
        "Metric over time",
        "metric",
        "Drag across a plot to zoom: all plots over time follow. A double click shows the whole run.",
    ),
    Section("timeline", "Timeline", "timeline"),
    Section("links", "Links over time", "links", "Traffic of each directed link between evaluations."),
    Section(
        "map",
        "Topology",
        "map",
        "In the time range: width is the rate; lines bend to the left of their direction.",
    ),
    Section("lines", "Iterations", "lines"),
    Section(
        "partition",
        "Partition",
        "partition",
        "Training samples by worker and class, and their owners.",
    ),
    Section("again", "Scenario and versions", "provenance"),
)


def run_page(run: Run, *, is_served: bool = False) -> str:
    """The HTML of a run's page; for `is_served` see `render`.

    Raises InputError where the run cannot be read, or plotly is not installed.
    """
    data = run_data(run)
    return render(data["title"], SECTIONS, data, SCRIPTS, is_served=is_served)


def run_data(run: Run) -> dict[str, Any]:
    """The data of a run's page by view; of a run in progress, so far. Raises InputError if it cannot be read."""
    metrics, links = run.metrics(), run.links()
    seed = f"seed {run.manifest['seed']}" if "seed" in run.manifest else ""
    end = _end(metrics, links)
    return {
        "title": " · ".join(filter(None, [scenario_label(run.manifest), run.system, seed])),
        "clock": "Virtual time" if run.is_virtual else "Time",
        "end": end,
        "headline": headline(run, metrics),
        "metric": metric_over(run, metrics),
        "timeline": timeline(run, metrics, end),
        "links": links_over(run, metrics, links, end),
        "lines": lines_of(run, metrics, links, end),
        "partition": _partition(run),
        "provenance": _provenance(run),
    }


def _end(metrics: pd.DataFrame, links: pd.DataFrame) -> float:
    """The last recorded time (s); 1 for a run without any."""
    times = [table["virtual_time"].max() for table in (metrics, links) if len(table)]
    return float(max(times, default=0.0)) or 1.0


def _partition(run: Run) -> dict[str, Any] | None:
    """The number of training samples by worker (row) and class; None if the manifest has none."""
    counts, names = run.manifest.get("partition"), run.manifest["workers"]
    if not counts or len(counts) != len(names):
        return None
    owners = run.manifest.get("owners", [])
    if len(owners) == len(names):
        names = [f"{name} ({_owners([*own])})" for name, own in zip(names, owners, strict=True)]
    return {"workers": names, "counts": counts}


def _owners(own: Sequence[str]) -> str:
    return f"owner{'s' * (len(own) > 1)} {listed(own, _MAX_OWNERS)}"


def _provenance(run: Run) -> dict[str, Any]:
    """The scenario's text (`yaml`), the manifest's `facts`, `versions`, and the `command` that repeats the run."""
    manifest = run.manifest
    return {
        "yaml": read_bytes(run.folder / SCENARIO, MOST_BYTES).decode(errors="replace"),
        "command": f"dlion {_COMMANDS[manifest.get('way', 'simulate')]} {SCENARIO}",
        "facts": [[name.replace("_", " "), str(manifest[name])[:_MAX_LETTERS]] for name in _FACTS if name in manifest],
        "versions": [[*item] for item in manifest.get("versions", {}).items()],
    }
