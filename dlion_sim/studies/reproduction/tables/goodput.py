"""Decoupled DiLoCo's goodput where chips fail often (2026, arXiv:2604.21428): the part of time that trains.

The abstract gives, for 1.2 million simulated chips, 58 % for elastic data parallelism and 88 and 93 % for 8 and 16
learners; its rates of failure and its times of recovery are not known. *By two constants*: of N chips, each fails f
times a second. A failure stops all for r seconds with data parallelism, and those of its learner for d seconds with M
learners, so that goodput is 1 / (1 + N f r) and 1 / (1 + N f d / M). The two constants are fitted to the first two
values: N f r = 0.724, d = 1.51 r.
*Simulated* are learners that fail as often, at random, and return with a peer's state after d (90 steps): the share of
all steps that they could have computed, with outer steps by two learners, or by half of them, which the others then
wait for. Steps of a second, 20 between outer steps, an hour of each with three seeds.

So the published trend is that of failures alone, if outer steps need few learners; a quorum of half costs far more. A
number is as published within a factor of 1.03.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

import pandas as pd

from dlion_sim.results import Run
from dlion_sim.studies.reproduction.tables.table import Check, Findings, PublishedTable, by_labels

PUBLISHED = {1: 0.58, 8: 0.88, 16: 0.93}
"""By learners; 1: elastic data parallelism."""
LEARNERS = (8, 16, 32)
FITTED, WITHIN = 8, 1.03
STALLED = 1 / PUBLISHED[1] - 1
"""N f r."""
LONGER = FITTED * (1 / PUBLISHED[FITTED] - 1) / STALLED
"""d / r."""


def goodput(learners: int) -> float:
    """By the two constants."""
    return 1 / (1 + STALLED * (LONGER / learners if learners > 1 else 1))


def useful(run: Run) -> float:
    """The share of all steps of a second that a run's learners could have computed."""
    outcome = run.outcome
    return float(outcome["availability"]["useful"] / (len(run.manifest["workers"]) * outcome["virtual_seconds"]))


def findings(runs: Sequence[Run]) -> Findings:
    """From simulations with several numbers of learners and quorums."""
    by_seed: dict[tuple[int, int], list[float]] = {}
    for (count, least, _), run in by_labels(runs, "count", "quorum", "seed").items():
        by_seed.setdefault((int(count), int(least)), []).append(useful(run))
    found = {key: fmean(each) for key, each in by_seed.items()}
    rows, checks = [], []
    for learners in (1, *LEARNERS):
        quorums = (2, learners // 2) if learners > 1 else ()
        measured = [f"{found[learners, quorum]:.1%}" for quorum in quorums] or ["", ""]
        published = f"{PUBLISHED[learners]:.0%}" if learners in PUBLISHED else ""
        name = "data parallel" if learners == 1 else str(learners)
        rows.append([name, published, f"{goodput(learners):.1%}", *measured])
        if learners in PUBLISHED and learners > 1:
            number = f"goodput of {learners} learners"
            # The constants are fitted to the one of 8.
            if learners != FITTED:
                checks.append(Check(number, "two constants", PUBLISHED[learners], goodput(learners), WITHIN))
            checks.append(Check(number, "simulated", PUBLISHED[learners], found[learners, 2], WITHIN))
    columns = ["learners", "published", "by two constants", "simulated, quorum of 2", "of half"]
    return Findings([pd.DataFrame(rows, columns=columns)], checks)


TABLE = PublishedTable(
    title="Goodput under failures",
    repeats="Decoupled DiLoCo (2026), abstract: goodput of 1.2 million simulated chips",
    paper="58 % of the time by data parallelism, 88 and 93 % with 8 and 16 learners",
    about=__doc__ or "",
    compute=findings,
)
