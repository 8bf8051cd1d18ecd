"""Whole runs: live nodes that share the GPU, and an environment of the paper."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.gpu_accept.correctness import UnmetError
from benchmarks.gpu_accept.record import Row
from benchmarks.gpu_accept.scale import Scale
from dlion_sim.live import run_locally
from dlion_sim.scenario import from_data, load, named
from dlion_sim.simulation import Progress, simulate

ROOT = Path(__file__).parents[2]
PAPER = ROOT / "scenarios" / "paper" / "hetero_sys_a.yaml"
_TO_END_SECONDS = 5.0
"""Reserved for ending a run early."""


def nodes(scale: Scale, folder: Path, seconds: float) -> Iterator[Row]:
    """Nodes as processes on one machine, paced like the scenario's machines."""
    scenario = from_data(scale.scenario("cipher", scale.nodes, iterations=None, duration=scale.live))
    run = run_locally(scenario, folder / "run", device=scale.device)
    done = run.iterations().groupby("worker").size()
    for node in run.manifest["nodes"]:
        late = node["late"] or {}
        yield {
            "node": node["rank"],
            "device": node["device"],
            "status": node["status"],
            "iterations": int(done.get(node["rank"], 0)),
            "late": late.get("late", 0) / max(1, late.get("computations", 0)),
            "most_seconds_late": late.get("most_seconds_late", 0.0),
        }
    devices = {node["device"].partition(":")[0] for node in run.manifest["nodes"]}
    if run.manifest["status"] != "completed" or devices != {scale.device}:
        raise UnmetError(f"the run is {run.manifest['status']}, on {', '.join(sorted(devices))}")


def paper(scale: Scale, folder: Path, seconds: float) -> Iterator[Row]:
    """Hetero SYS A with Cipher, as far as time allows."""
    data = Path(os.environ.get("DLION_DATA", "")) / "cifar-10-batches-py"
    made_up = [] if os.environ.get("DLION_DATA") and data.is_dir() else [f"workload.dataset={scale.images}"]
    scenario = load(PAPER, [*made_up, *scale.overrides])
    began, reached = time.monotonic(), 0.0

    def observe(progress: Progress) -> None:
        nonlocal reached
        reached = progress.virtual_seconds

    def is_enough() -> bool:
        return time.monotonic() - began > seconds - _TO_END_SECONDS

    run = simulate(
        scenario, folder / "run", device=scale.device, checkpoint_every=None, interrupted=is_enough, observe=observe
    )
    took, summary = time.monotonic() - began, run.summary or {}
    yield {
        "scenario": scenario.name,
        "data": str(named(scenario.workload.dataset)[0]),
        "status": summary["status"],
        "seconds": took,
        "virtual_seconds": summary["virtual_seconds"],
        "virtual_seconds_per_second": summary["virtual_seconds"] / took,
        "samples_per_second": summary["samples"] / took,
        "evaluation_share": summary["evaluation_share"],
        "accuracy": summary["accuracy"]["mean"],
    }
