"""Accuracy with lost packets of gradients, compared with none, after equal numbers of iterations.

Eight workers push gradients to a server, which steps by their mean. Packets are lost independently at random, without a
network: of all packets, or only of those with large or small gradients, as the transport classifies them. Missing
entries count as zero, or the rest of the message is scaled up. Cutting and assembling are the transport's. All rows
have the same seeds of data, initial parameters and losses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from statistics import fmean, stdev
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console

from benchmarks.measuring import options, table
from dlion_sim.assembly import Setting
from dlion_sim.bounded_loss.assembling import Assembler
from dlion_sim.bounded_loss.cutting import Cutter, packets
from dlion_sim.learning.gradients import GradientExecutor
from dlion_sim.protocol.messages import Contribution, Message
from dlion_sim.scenario import Dlcp, from_data
from dlion_sim.streams import stream

WORKERS, BATCH = 8, 32
DATASET, ITERATIONS, SEEDS = "fashion_mnist", 600, 3
SHORT = "digits", 4, 2


@dataclass(frozen=True)
class Losses:
    """Losses: a share of all bytes, from all packets or only those with large or small gradients."""

    part: float
    of: Literal["all", "large", "small"] = "all"
    fill: Literal["zero", "rescale"] = "zero"


STUDY = (
    *(Losses(part) for part in (0.0, 0.007, 0.033, 0.1, 0.2, 0.3)),
    Losses(0.3, fill="rescale"),
    *(Losses(0.01, "large"), Losses(0.016, "small"), Losses(0.3, "large"), Losses(0.3, "small")),
)


@cache
def setting_of(dataset: str, seed: int) -> Setting:
    """Data, model and initial parameters."""
    scenario = {
        "name": "bounded_loss",
        "seed": seed,
        "iterations": 1,
        "workload": {"dataset": dataset, "optimizer": {"learning_rate": 0.1}},
        "cluster": {"clouds": [{"name": "lab", "workers": [{"count": WORKERS, "compute": 1}]}]},
        "system": "baseline",
    }
    return Setting.of(from_data(scenario))


def train(losses: Losses, dataset: str, iterations: int, seed: int) -> tuple[float, float]:
    """The final test accuracy, and the lost share of the gradients' squared norm."""
    setting = setting_of(dataset, seed)
    executor = GradientExecutor(setting.model, setting.dataset, setting.device, threads=1)
    replica, evaluator = setting.worker(0).replica, setting.evaluator(1)
    samplers = [setting.sampler(worker) for worker in range(WORKERS)]
    dlcp = Dlcp(fill=losses.fill)
    cutter, assembler = Cutter(dlcp, setting.layout, WORKERS), Assembler(dlcp, setting.layout, WORKERS)
    rng = stream(seed, "losses")
    sent = lost = 0.0
    for iteration in range(iterations):
        tickets = [executor.submit(replica, sampler.take(BATCH)) for sampler in samplers]
        total = torch.zeros(setting.layout.size)
        for worker, ticket in enumerate(tickets):
            message = Message(worker, Contribution(iteration, BATCH), (executor.result(ticket)[1],))
            have = draw(losses, message, cutter, rng)
            total += assembler.assemble(message, have).tensors[0]
            squares = message.tensors[0].square()
            sent += float(squares.sum())
            lost += float(squares[np.repeat(have == 0, 356)[: len(squares)]].sum())
        replica.step(total / WORKERS)
    (score,) = evaluator.evaluate([replica])
    executor.close()
    evaluator.close()
    return score.metric, lost / sent


def draw(losses: Losses, message: Message, cutter: Cutter, rng: np.random.Generator) -> NDArray[np.uint8]:
    """The packets of a message that arrive, uint8 [n]."""
    if losses.of == "all":
        may_be_lost = np.ones(packets(message), np.bool_)
    else:
        may_be_lost = cutter.cut(message).large == (losses.of == "large")
    part = min(1.0, losses.part / max(may_be_lost.mean(), 1e-9))
    lost: NDArray[np.bool_] = may_be_lost & (rng.random(len(may_be_lost)) < part)
    return (~lost).astype(np.uint8)


def main() -> None:
    """Train with each kind of losses and each seed."""
    arguments = options(__doc__).parse_args()
    dataset, iterations, seeds = SHORT if arguments.short else (DATASET, ITERATIONS, SEEDS)
    study = STUDY[:3] if arguments.short else STUDY
    torch.set_num_threads(1)
    columns = ("lost", "of packets with", "fill", "accuracy (%)", "less than without losses", "of |g|² lost (%)")
    title = f"bounded loss: mlp on {dataset}, {WORKERS} workers, {iterations} iterations, {seeds} seeds"
    shown = table(title, *columns)
    whole: list[float] = []
    for losses in study:
        runs = [train(losses, dataset, iterations, seed) for seed in range(seeds)]
        accuracies = [100 * accuracy for accuracy, _ in runs]
        whole = whole or accuracies
        less = [before - after for before, after in zip(whole, accuracies, strict=True)]
        shown.add_row(
            f"{100 * losses.part:g} %",
            {"all": "any", "large": "large gradients", "small": "small gradients"}[losses.of],
            losses.fill,
            spread(accuracies),
            spread(less),
            f"{100 * fmean(part for _, part in runs):.2g}",
        )
    Console().print(shown)


def spread(values: list[float]) -> str:
    """Mean and standard error."""
    return f"{fmean(values):.2f} ± {stdev(values) / math.sqrt(len(values)):.2f}"


if __name__ == "__main__":
    main()
