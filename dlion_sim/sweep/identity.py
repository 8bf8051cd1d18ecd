"""Whether runs are of the same scenario, however it is written and wherever its files are."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from dlion_sim import own_code
from dlion_sim.results import Run
from dlion_sim.results.run_folder import SCENARIO
from dlion_sim.scenario import Scenario, load, to_data

_COSTS = ("workload.compute_time.beta", "workload.cost_as.flops")
"""Paths of costs that are by default the model's."""


def content_of(scenario: Scenario) -> dict[str, Any]:
    """What a scenario's runs depend on, with what its files hold, or digests of that, in place of their paths."""
    sources = {
        path: own_code.source_digest(reference, scenario.modules) for path, reference in scenario.references.items()
    }
    lora = scenario.workload.lora
    base = {"lora_base": _digest_of_base(Path(lora.base))} if lora and lora.base else {}
    return {**_data_of(scenario), "own_code": sources, **base}


def content_of_run(run: Run) -> dict[str, Any]:
    """The same of a run's scenario. Raises InputError if it cannot be read."""
    sources = {path: own["source"] for path, own in run.manifest.get("own_code", {}).items()}
    scenario = load(run.folder / SCENARIO)
    lora = scenario.workload.lora
    base = {"lora_base": lora.base_sha256} if lora and lora.base else {}
    return {**_data_of(scenario), "own_code": sources, **base}


def digest_of(scenario: Scenario) -> str:
    """A digest that is equal only for scenarios of equal content."""
    return hashlib.sha256(msgspec.json.encode(content_of(scenario), order="sorted")).hexdigest()[:32]


def costs_left_open(scenario: Scenario) -> list[str]:
    """Paths of the costs that a scenario leaves to its model."""
    workload = scenario.workload
    left_open = (
        workload.compute_time.beta is None,
        workload.cost_as is not None and workload.cost_as.flops is None,
    )
    return [path for path, is_open in zip(_COSTS, left_open, strict=True) if is_open]


def contents(run: Run, scenario: Scenario) -> tuple[dict[str, Any], dict[str, Any]]:
    """Contents of a run's scenario and of this one, whose system is complete; equal if they are the same scenario.

    Raises InputError if the run's cannot be read.
    """
    former, now = content_of_run(run), content_of(scenario)
    # A run's scenario states all costs. Runs of earlier states of the code do not tell which ones are the model's.
    left_open = run.manifest.get("sweep", {}).get("left_open", _COSTS)
    for path in _COSTS:
        _, part, key = path.split(".")
        had = former["workload"].get(part, {})
        if path in left_open and part in now["workload"] and key in had:
            now["workload"][part].setdefault(key, had[key])
    return former, now


def is_of(run: Run, scenario: Scenario) -> bool:
    """Whether a run has this scenario, whose system is complete. Raises InputError if the run's cannot be read."""
    former, now = contents(run, scenario)
    return former == now


def _data_of(scenario: Scenario) -> dict[str, Any]:
    data = to_data(scenario)
    for key in ("description", "modules"):
        data.pop(key, None)
    for key in ("base", "base_sha256"):
        data["workload"].get("lora", {}).pop(key, None)
    return data


def _digest_of_base(file: Path) -> str:
    """Of a file's bytes; empty where there is none, which a run will tell."""
    return _sha256(file, file.stat().st_mtime_ns) if file.is_file() else ""


@lru_cache(maxsize=8)
def _sha256(file: Path, changed_ns: int) -> str:
    """All points of a sweep may have the same base, of gigabytes."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
