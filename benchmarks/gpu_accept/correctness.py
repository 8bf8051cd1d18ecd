"""Correctness on a GPU: its tests, reproducibility, and agreement with a CPU."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.gpu_accept.record import Row
from benchmarks.gpu_accept.scale import Scale
from dlion_sim.learning import FusedGradientExecutor, GradientExecutor, Layout, Replica, flatten
from dlion_sim.results import WALL_CLOCK_COLUMNS
from dlion_sim.scenario import from_data
from dlion_sim.simulation import simulate

ROOT = Path(__file__).parents[2]
MARK = "gpu"
MOST_OFF = 2e-2
"""In parts of a gradient's norm: rounding may change the sign before a ReLU or the maximum of a pool."""
MOST_POINTS = 0.05
"""The greatest difference of accuracies of a short run."""
CPU = torch.device("cpu")
REPLICAS = 3


class UnmetError(Exception):
    """A requirement is not met."""


def machine(scale: Scale, folder: Path, seconds: float) -> Iterator[Row]:
    """The device and its software; and a product of matrices."""
    device = torch.device(scale.device)
    ones = torch.ones(256, 256, device=device)
    if float((ones @ ones).sum()) != 256**3:
        raise UnmetError("a product of ones is wrong")
    facts: dict[str, Any] = {"python": platform.python_version(), "torch": torch.__version__, "device": scale.device}
    if scale.device == "cuda":
        about = torch.cuda.get_device_properties(0)
        facts |= {"gpu": about.name, "gpus": torch.cuda.device_count(), "memory_gib": about.total_memory / 2**30}
        facts |= {"cuda": str(torch.version.cuda), "cudnn": str(torch.backends.cudnn.version())}  # type: ignore[no-untyped-call]
    yield facts


def tests(scale: Scale, folder: Path, seconds: float) -> Iterator[Row]:
    """The tests that need a GPU."""
    import pytest

    outcomes = _Outcomes()
    files = [file for file in sorted((ROOT / "tests").rglob("test_*.py")) if f"mark.{MARK}" in file.read_text()]
    chosen = ["-q", "-m", MARK, "-p", "no:cacheprovider", f"--rootdir={ROOT}", f"--basetemp={folder / 'tests'}"]
    code = pytest.main([*chosen, *map(str, files)], plugins=[outcomes])
    yield from outcomes.rows
    good = ("passed",) if scale.device == "cuda" else ("passed", "skipped")
    others = [str(row["test"]) for row in outcomes.rows if row["outcome"] not in good]
    if others or not outcomes.rows or code != pytest.ExitCode.OK:
        raise UnmetError(f"{len(others)} of {len(outcomes.rows)} tests did not pass: {', '.join(others) or code}")


class _Outcomes:
    """A pytest plugin that records outcomes."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Record the end of a phase of a test."""
        if report.when == "call" or report.outcome != "passed":
            name = report.nodeid.rpartition("/")[2]
            self.rows.append({"test": name, "outcome": report.outcome, "seconds": round(report.duration, 2)})


def repeated(scale: Scale, folder: Path, seconds: float) -> Iterator[Row]:
    """Runs of the same seed have equal metrics, to the bit, except for wall times."""
    unequal = []
    for model in scale.runs:
        scenario = from_data(scale.scenario(model, 2 * max(1, scale.workers[-1] // 2)))
        one, other = (
            simulate(scenario, folder / f"{model}-{turn}", device=scale.device, checkpoint_every=None).metrics()
            for turn in range(2)
        )
        excluded = list(WALL_CLOCK_COLUMNS)
        equal = one.drop(columns=excluded).equals(other.drop(columns=excluded))
        unequal += [] if equal else [model]
        yield {"model": model, "iterations": scale.iterations, "rows": len(one), "equal": equal}
    if unequal:
        raise UnmetError(f"runs of the same seed differ: {', '.join(unequal)}")


def close(scale: Scale, folder: Path, seconds: float) -> Iterator[Row]:
    """Gradients and whole runs differ from those of a CPU by rounding only."""
    far = []
    for model in scale.models:
        off = _gradients_off(scale, model)
        far += [model] if not off <= MOST_OFF else []
        yield {"what": f"gradients, {model}", "off": off, "most": MOST_OFF}
    scenario = from_data(scale.scenario("mlp", 4, iterations=10 * scale.iterations))
    on = [
        (simulate(scenario, folder / device, device=device, checkpoint_every=None).summary or {})["accuracy"]["mean"]
        for device in ("cpu", scale.device)[: 1 + (scale.device != "cpu")]
    ]
    off = abs(on[0] - on[-1])
    far += ["accuracy"] if not off <= MOST_POINTS else []
    yield {"what": "accuracy, mlp", "off": off, "most": MOST_POINTS}
    if far:
        raise UnmetError(f"too far from a CPU: {', '.join(far)}")


def _gradients_off(scale: Scale, model: str) -> float:
    """The greatest distance of a gradient from that of a CPU, relative to its norm."""
    problems = [scale.problem(model, seed) for seed in range(REPLICAS)]
    (first, dataset), layout = problems[0], Layout.of(problems[0][0])
    device = torch.device(scale.device)
    rng = np.random.default_rng(0)
    batches = [rng.integers(len(dataset.train_targets), size=scale.batch) for _ in problems]

    def answers(executor: FusedGradientExecutor | GradientExecutor, where: torch.device) -> Sequence[Tensor]:
        replicas = [Replica(layout, flatten(each).to(where), learning_rate=0.1) for each, _ in problems]
        with closing(executor):
            tickets = [executor.submit(*each) for each in zip(replicas, batches, strict=True)]
            return [executor.result(ticket)[1].cpu() for ticket in tickets]

    ours = answers(FusedGradientExecutor(first, dataset, device), device)
    theirs = answers(GradientExecutor(first, dataset, CPU, kernels="torch"), CPU)
    return max(float((a - b).norm() / b.norm()) for a, b in zip(ours, theirs, strict=True))
