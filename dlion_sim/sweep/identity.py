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


def is_of(run: Run, scenario: Scenario) -> bool:
    """Whether a run has this scenario, whose system is complete. Raises InputError if the run's cannot be read."""
    former, now = content_of_run(run), content_of(scenario)
    # Costs that a scenario leaves open are those of its model.
    had, workload = former["workload"], now["workload"]
    workload["compute_time"] = {**had["compute_time"], **workload["compute_time"]}
    if "cost_as" in workload:
        workload["cost_as"] = {**had.get("cost_as", {}), **workload["cost_as"]}
    return now == former


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
