"""The steps of the acceptance."""

from __future__ import annotations

import signal
import sys
from functools import partial
from pathlib import Path

import torch

from benchmarks.gpu_accept import correctness, runs, speed
from benchmarks.gpu_accept.busy import busy
from benchmarks.gpu_accept.goals import goals
from benchmarks.gpu_accept.record import Record, Step
from benchmarks.gpu_accept.running import Work, has_gpu, run
from benchmarks.gpu_accept.scale import ON_GPU, REHEARSAL
from dlion_sim.interrupts import Interrupts

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results" / "gpu" / "acceptance.json"
REHEARSED = ROOT / "results" / "runs" / "gpu-rehearsal.json"
LIMIT = 480.0
NO_GPU = "this benchmark needs a GPU that PyTorch can use"
STEPS = (
    ("machine", correctness.machine, 30, "The GPU and its software, and that it multiplies"),
    ("tests", correctness.tests, 100, "The tests that need a GPU"),
    ("repeated", correctness.repeated, 60, "Runs of one seed are equal, to the bit"),
    ("close", correctness.close, 50, "Gradients and accuracy are close to those of a CPU"),
    ("rates", speed.rates, 130, "Samples per second one by one and fused, and the peak memory of each"),
    ("busy", busy, 60, "The share of time in which kernels run"),
    ("nodes", runs.nodes, 90, "Live nodes that share the GPU"),
    ("paper", runs.paper, 120, "The paper's Hetero SYS A"),
)
"""Name, work, maximum seconds and description; the most important first."""


def accept(output: Path | None, limit: float, *, rehearse: bool) -> int:
    """Run all steps; returns the exit code: 1 unless all pass, 2 without a GPU, 128 and more after a signal."""
    if not rehearse and not has_gpu():
        print(NO_GPU, file=sys.stderr)
        return 2
    scale = REHEARSAL if rehearse else ON_GPU
    file = output or (REHEARSED if rehearse else RESULTS)
    file.parent.mkdir(parents=True, exist_ok=True)
    work: dict[str, Work] = {name: partial(function, scale) for name, function, _, _ in STEPS}
    record = Record(file, rehearse, limit, [Step(name, about, bound) for name, _, bound, about in STEPS])
    if rehearse:
        torch.set_num_threads(1)  # Its operators are too small for several cores.
    with Interrupts() as interrupts:
        run(record, work, lambda: interrupts.number)
    for goal in goals({"steps": [vars(step) for step in record.steps]}):
        print(f"goal: {goal.what}: {goal.wanted}; {goal.figure}")
    print(f"{record.status}: {file}")
    if interrupts.number:
        return 128 + signal.Signals(interrupts.number)
    return int(any(step.status != "passed" for step in record.steps))
