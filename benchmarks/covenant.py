"""Covenant-72B's 70 seconds of communication a round, beside its links (SparseLoCo, 20 peers, 30 local steps).

Its report (2026) gives payloads 146 times smaller than FP32's (1.97 GB), 500 Mbit/s down and 110 up, and a utilization
of 94.5 %, which with 70 s of communication is 1,203 s of computation. *By payload* is the time in which a peer's link
carries its own payload up and those of 19 others down. The next column is simulated, with the headers of packets:
`sparse_loco` by 20 workers with that many parameters, whose payloads are 1.97 GB, too. From worker to worker, each
sends 19 copies; a store that all load from takes one of each, which is 19 times the bandwidth up here.

Neither the store nor twice its links leads to 70 s; 4.3 Gbit/s down do. So peers load fewer payloads, load them while
they compute, or have far faster links.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from torch import Tensor, nn

import dlion_sim
from benchmarks.measuring import options, present, workload, zeros

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


def by_payload(up: float, down: float) -> float:
    """Seconds until a payload is sent to all peers with `up` Mbit/s in all, and theirs are received."""
    bits = 8 * 4 * PARAMETERS / SMALLER
    return (PEERS - 1) * bits / (min(up, down) * 1e6)


def simulated(up: float, down: float, rounds: int) -> float:
    """Seconds of communication in a round; the mean of so many rounds."""
    step = COMPUTATION / PERIOD
    scenario = {
        "name": "covenant",
        "iterations": PERIOD * (rounds + 1),
        "workload": workload(
            __spec__.name,
            "line",
            cost_as={"parameters": int(PARAMETERS), "flops": "1 FLOP"},
            compute_time={"alpha": f"{step} s", "beta": "0.001 us"},
        ),
        "cluster": {
            "clouds": [
                {"name": f"peer{each}", "workers": [{"nic": {"up": f"{up} Mbps", "down": f"{down} Mbps"}}]}
                for each in range(PEERS)
            ],
            "wan": {"bandwidth": "1000 Gbps", "rtt": "0.1 s"},
        },
        "system": {"name": "sparse_loco", "exchange": {"period": PERIOD}},
    }
    with TemporaryDirectory() as folder:
        iterations = dlion_sim.simulate(scenario, Path(folder) / "run").iterations()
    ends = iterations[iterations["worker"] == 0].sort_values("iteration")["virtual_time"].to_numpy()
    return float(ends[-1] - ends[PERIOD - 1]) / rounds - COMPUTATION


def numbers() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """A data set of nothing in particular."""
    return zeros(PEERS, 512)


def line(dataset: object) -> nn.Module:
    """One layer, in which the headers of messages count little."""
    return nn.Linear(512, 512, bias=False)


def rows(rounds: int) -> Iterator[list[str]]:
    """The table, simulated in so many rounds."""
    yield ["published", "", "", f"{COMMUNICATION:.0f} s", f"{UTILIZATION:.1%}"]
    for name, (up, down) in LINKS.items():
        found = simulated(up, down, rounds)
        used = COMPUTATION / (COMPUTATION + found)
        yield [name, f"{down:.0f}", f"{by_payload(up, down):.0f} s", f"{found:.0f} s", f"{used:.1%}"]


def main() -> None:
    """Print the table, and write it to `--output`."""
    arguments = options(__doc__, page=True).parse_args()
    columns = ["links", "Mbit/s down", "by payload", "a round's communication", "utilization"]
    found = list(rows(1 if arguments.short else 3))
    titles = "a round of 20 peers with 72 billion parameters", "A round of Covenant-72B"
    present("covenant", __doc__, titles, columns, found, arguments.output)


if __name__ == "__main__":
    main()
