"""Decoupled DiLoCo's goodput where chips fail often (2026, arXiv:2604.21428): the part of time that trains.

The abstract gives, for 1.2 million simulated chips, 58 % for elastic data parallelism and 88 and 93 % for 8 and 16
learners; its rates of failure and its times of recovery are not known. *By two constants*: of N chips, each fails f
times a second. A failure stops all for r seconds with data parallelism, and those of its learner for d seconds with M
learners, so that goodput is 1 / (1 + N f r) and 1 / (1 + N f d / M). The two constants are fitted to the first two
values: N f r = 0.724, d = 1.51 r.
*Simulated* are learners that fail as often, at random, and return with a peer's state after d (90 steps): the share of
all steps that they could have computed, with outer steps by two learners, or by half of them, which the others then
wait for. Steps of a second, 20 between outer steps, an hour of each.

So the published trend is that of failures alone, if outer steps need few learners; a quorum of half costs far more.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from torch import Tensor, nn

import dlion_sim
from benchmarks.measuring import options, present, workload, zeros

PUBLISHED = {1: 0.58, 8: 0.88, 16: 0.93}
"""By learners; 1: elastic data parallelism."""
LEARNERS = (4, 8, 16, 32)
DOWN = 90.0
"""Seconds until a learner is back: d."""
STALLED = 1 / PUBLISHED[1] - 1
"""N f r."""
LONGER = 8 * (1 / PUBLISHED[8] - 1) / STALLED
"""d / r."""


def goodput(learners: int) -> float:
    """By the two constants."""
    return 1 / (1 + STALLED * (LONGER / learners if learners > 1 else 1))


def simulated(learners: int, quorum: int, seconds: float) -> float:
    """Of so many learners, in a run of so many seconds."""
    up = learners * DOWN / (STALLED * LONGER)
    scenario = {
        "name": "goodput",
        "duration": f"{seconds} s",
        "workload": workload(__spec__.name, "lines", compute_time={"alpha": "1 s", "beta": "0 s"}),
        "cluster": {
            "clouds": [{"name": f"site{each}", "workers": [{"nic": "100 Gbps"}]} for each in range(learners)],
            "wan": {"bandwidth": "100 Gbps", "rtt": "50 ms"},
        },
        "availability": {
            "workers": {"*": {"process": "exponential", "up": f"{up:.3f} s", "down": f"{DOWN} s"}},
            "restart": "0 s",
        },
        "system": {"name": "decoupled_diloco", "exchange": {"period": 20, "delay": 4, "quorum": quorum}},
    }
    with TemporaryDirectory() as folder:
        summary = dlion_sim.simulate(scenario, Path(folder) / "run").summary or {}
    return float(summary["availability"]["useful"] / (learners * seconds))


def numbers() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """A data set of nothing in particular."""
    return zeros(64, 1)


def lines(dataset: object) -> nn.Module:
    """Two layers of few parameters."""
    return nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1))


def main() -> None:
    """Print the table, and write it to `--output`."""
    arguments = options(__doc__, page=True).parse_args()
    columns = ["learners", "published", "by two constants", "simulated, quorum of 2", "of half"]
    seconds = 300 if arguments.short else 3600
    rows = []
    for learners in (1, *LEARNERS):
        published = f"{PUBLISHED[learners]:.0%}" if learners in PUBLISHED else ""
        quorums = (2, learners // 2) if learners > 1 else ()
        measured = [f"{simulated(learners, quorum, seconds):.1%}" for quorum in quorums] or ["", ""]
        name = "data parallel" if learners == 1 else str(learners)
        rows.append([name, published, f"{goodput(learners):.1%}", *measured])
    titles = "goodput where 1.2 million chips fail", "Goodput under failures"
    present("goodput", __doc__, titles, columns, rows, arguments.output)


if __name__ == "__main__":
    main()
