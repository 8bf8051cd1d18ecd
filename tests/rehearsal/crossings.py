"""What crosses between host and GPU for an iteration of a worker, counted on the rehearsal device.

`python -m tests.rehearsal.crossings` prints a table; with `--places` also the lines of code that ask for it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.table import Table

from dlion_sim.learning import accelerator
from dlion_sim.scenario import Scenario, load
from dlion_sim.simulation import simulate
from tests.rehearsal.device import MACHINE, NAME, Crossing, register
from tests.simulation.scenarios import digits

KINDS = "to device", "to host", "read"
ROOT = Path(__file__).parents[2]


def many(system: object, *overrides: str) -> Scenario:
    """Cipher on digits, by 16 workers."""
    workers = [{"count": 8, "compute": "24 cores", "nic": "50 Mbps"}]
    clouds = [{"name": name, "workers": workers} for name in ("east", "west")]
    cluster = {"clouds": clouds, "wan": {"bandwidth": "40 Mbps", "rtt": "60 ms"}}
    return digits("workload.model=cipher", *overrides, cluster=cluster, system=system, iterations=6, duration=None)


def cases() -> dict[str, Scenario]:
    """By name; none is evaluated but at its begin and its end."""
    rarely = "workload.evaluate_every=1 h"
    language = (
        "workload.dataset={name: shakespeare, context: 64}",
        "workload.model={name: gpt, layers: 2, heads: 2, width: 32}",
    )
    return {
        "quickstart": load(ROOT / "scenarios" / "quickstart.yaml", ["duration=5 s", rarely]),
        "Cipher, 16 workers, Baseline": many("baseline", rarely),
        "Cipher, 16 workers, DLion": many("dlion", rarely),
        "Cipher, 16 workers, top-k": many("baseline", rarely, "system.exchange=top_k"),
        "Cipher, 16 workers, DGC": many("baseline", rarely, "system.exchange=dgc"),
        "GPT, DiLoCo": digits(
            *language,
            rarely,
            "workload.evaluation_samples=50",
            system={"name": "diloco", "exchange": {"period": 4}},
            iterations=8,
            duration=None,
        ),
        "GPT, AdamW, clipped, Gaia": digits(
            *language,
            rarely,
            "workload.evaluation_samples=50",
            "workload.optimizer={kind: adamw, learning_rate: 0.01, clip_norm: 0.3}",
            system="gaia",
            iterations=8,
            duration=None,
        ),
    }


def counted(scenario: Scenario, folder: Path) -> tuple[list[Crossing], int]:
    """What crosses in a run, its begin and its evaluations apart, and how many iterations it has, of all workers."""
    with MACHINE.counted() as crossings:
        run = simulate(scenario, folder, device="cuda", checkpoint_every=None)
    apart = (
        "learning/evaluation.py",
        "assembly/setting.py",
        "datasets/dataset.py",
        "__init__",
        "_copy_of_model",
        "_statistics",
        "elsewhere",
    )
    return [each for each in crossings if not any(name in each.place for name in apart)], len(run.iterations())


def main() -> None:
    """Print what the cases come to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--places", action="store_true", help="also tell the lines of code")
    is_long = parser.parse_args().places
    accelerator.KIND = NAME
    table = Table("an iteration of a worker", *KINDS, "kB to device", "kB to host")
    console = Console(width=140)
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, scenario) in enumerate(cases().items()):
            crossings, iterations = counted(scenario, Path(folder) / str(number))
            of = Counter(each.kind for each in crossings)
            kilobytes = Counter[str]()
            for each in crossings:
                kilobytes[each.kind] += each.nbytes / 1e3
            numbers = [of[kind] / iterations for kind in KINDS] + [kilobytes[kind] / iterations for kind in KINDS[:2]]
            table.add_row(name, *(f"{number:.2f}" for number in numbers))
            if is_long:
                for (kind, place), count in Counter((each.kind, each.place) for each in crossings).most_common():
                    console.print(f"{name}: {kind:10} {count / iterations:8.2f}  {place}")
    console.print(table)


if __name__ == "__main__":
    from tests.rehearsal.streams import Module

    LIBRARIES = register(Module())
    sys.exit(main())
