"""Covenant-72B's 70 seconds of communication a round, beside its links (SparseLoCo, 20 peers, 30 local steps).

Its report (2026) gives payloads 146 times smaller than FP32's (1.97 GB), 500 Mbit/s down and 110 up, and a utilization
of 94.5 %, which with 70 s of communication is 1,203 s of computation. *By payload* is the time in which a peer's link
carries its own payload up and those of 19 others down. The next column is simulated, with the headers of packets:
`sparse_loco` by 20 workers with that many parameters, whose payloads are 1.97 GB, too. From worker to worker, each
sends 19 copies; a store that all load from takes one of each, which is 19 times the bandwidth up here.
A time is as published within a factor of 1.1.

Neither the store nor twice its links leads to 70 s; 4.3 Gbit/s down do. So peers load fewer payloads, load them while
they compute, or have far faster links.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from dlion_sim.results import Run
from dlion_sim.studies.reproduction.tables.table import Check, Findings, PublishedTable, by_labels

PARAMETERS, SMALLER, PEERS, PERIOD = 72e9, 146, 20, 30
COMMUNICATION, UTILIZATION = 70.0, 0.945
"""Published: seconds of a round, and the part of time that computes."""
COMPUTATION = COMMUNICATION * UTILIZATION / (1 - UTILIZATION)
"""Seconds of a round."""
UP, DOWN = 110.0, 500.0
"""Mbit/s."""
LINKS = {
    "from worker to worker": (UP, DOWN),
    "through a store": (UP * (PEERS - 1), DOWN),
    "twice as fast": (2 * UP * (PEERS - 1), 2 * DOWN),
    "4.3 Gbit/s down": (4300.0 * (PEERS - 1), 4300.0),
}
"""Mbit/s up, of all copies, and down."""
OWN = ("from worker to worker", "through a store")
"""Those that it may have meant; the others are counterfactuals."""
WITHIN = 1.1


def by_payload(up: float, down: float) -> float:
    """Seconds until a payload is sent to all peers with `up` Mbit/s in all, and theirs are received."""
    bits = 8 * 4 * PARAMETERS / SMALLER
    return (PEERS - 1) * bits / (min(up, down) * 1e6)


def communication(run: Run) -> float:
    """Seconds of a round in which a worker of a run does not compute: the mean over all rounds but the first."""
    iterations = run.iterations()
    ends = iterations[iterations["worker"] == 0].sort_values("iteration")["virtual_time"].to_numpy()
    rounds = len(ends) // PERIOD - 1
    return float(ends[-1] - ends[PERIOD - 1]) / rounds - COMPUTATION


def findings(runs: Sequence[Run]) -> Findings:
    """From simulations with several links."""
    by_links = by_labels(runs, "nic")
    rows = [["published", "", "", f"{COMMUNICATION:.0f} s", f"{UTILIZATION:.1%}"]]
    checks = []
    for name, (up, down) in LINKS.items():
        found = communication(by_links[name,])
        used = COMPUTATION / (COMPUTATION + found)
        rows.append([name, f"{down:.0f}", f"{by_payload(up, down):.0f} s", f"{found:.0f} s", f"{used:.1%}"])
        if name in OWN:
            checks.append(Check(f"seconds of communication a round, {name}", "simulated", COMMUNICATION, found, WITHIN))
    columns = ["links", "Mbit/s down", "by payload", "a round's communication", "utilization"]
    return Findings([pd.DataFrame(rows, columns=columns)], checks)


TABLE = PublishedTable(
    title="A round of Covenant-72B",
    repeats="Covenant-72B (2026), its report: communication and utilization over the Internet",
    paper="70 s of communication a round, 94.5 % utilization, over 500 Mbit/s down and 110 up",
    about=__doc__ or "",
    compute=findings,
)
