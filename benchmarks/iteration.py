"""Where the processor time of a worker-iteration goes, by the number of workers.

DLion without growing batches learns the digits by the network `mlp`: six workers all to all, more on a graph of
degree 8. Parts are measured by wrapping their methods, which takes time itself: the total is of a run without that.
"""

from __future__ import annotations

import functools
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from rich.console import Console

from benchmarks.measuring import options, table
from dlion_sim.assembly import Recorder
from dlion_sim.learning import FusedGradientExecutor, GradientExecutor
from dlion_sim.protocol.choices import Exchange
from dlion_sim.protocol.exchange.max_n import MaxNExchange
from dlion_sim.protocol.worker import Worker
from dlion_sim.scenario import from_data
from dlion_sim.simulation.engine import Engine
from dlion_sim.simulation.flows import FlowNetwork
from dlion_sim.simulation.messaging import Messaging
from dlion_sim.simulation.simulate import simulate

CASES, SHORT = ((6, 5, 500), (64, 8, 100), (1024, 8, 10)), ((6, 5, 2),)
"""Workers, the degree of their graph, and iterations."""
PARTS: dict[str, list[tuple[type, str]]] = {
    "gradients": [(of, name) for of in (GradientExecutor, FusedGradientExecutor) for name in ("submit", "result")],
    "selection": [(MaxNExchange, "outgoing")],
    "updates": [(Exchange, "apply")],
    "rest of the protocol": [(Worker, "handle")],
    "network": [(Messaging, "send"), (FlowNetwork, "_settle"), (FlowNetwork, "_end")],
    "rows": [(Recorder, "iteration"), (Recorder, "sent"), (Recorder, "append")],
    "event loop": [(Engine, "run")],
}
"""The methods of each part. What a method spends in one of another part counts there."""


class Clock:
    """Processor seconds of this thread by part."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._inside: list[float] = []
        """Of each measured call in progress, the seconds of those inside."""

    def measured(self, part: str, method: Callable[..., Any]) -> Callable[..., Any]:
        """The method, with its time measured."""

        @functools.wraps(method)
        def call(*arguments: Any, **named: Any) -> Any:
            began = time.thread_time()
            self._inside.append(0.0)
            try:
                return method(*arguments, **named)
            finally:
                lasted = time.thread_time() - began
                self.seconds[part] += lasted - self._inside.pop()
                if self._inside:
                    self._inside[-1] += lasted

        return call


@contextmanager
def measuring(clock: Clock) -> Iterator[None]:
    """Measure all parts within the block."""
    with ExitStack() as stack:
        for part, methods in PARTS.items():
            for of, name in methods:
                stack.enter_context(patch.object(of, name, clock.measured(part, getattr(of, name))))
        yield


def seconds(workers: int, degree: int, iterations: int) -> float:
    """Processor seconds of the simulating thread."""
    system = {"name": "dlion", "batching": "fixed", "knowledge_transfer": "none"}
    cloud = {"name": "lab", "workers": [{"count": workers, "compute": "4 cores", "nic": "10 Mbps"}]}
    scenario = from_data(
        {
            "name": "iteration",
            "iterations": iterations,
            "record_transfers": False,
            "workload": {
                "dataset": "digits",
                "model": "mlp",
                "batch_size": 8,
                "partition": "shared",
                "compute_time": {"alpha": "10 ms", "beta": "60 ms"},
                "evaluate_every": "1000000 s",
            },
            "cluster": {"clouds": [{**cloud, "lan": {"rtt": "20 ms"}}]},
            "system": {**system, "topology": {"kind": "regular", "degree": degree}},
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        began = time.thread_time()
        simulate(scenario, Path(folder) / "run", checkpoint_every=None)
        return time.thread_time() - began


def main() -> None:
    """Print the parts of each case."""
    arguments = options(__doc__, repeat=3).parse_args()
    seconds(6, 5, 1)  # imports and compiles
    shown = table("microseconds of processor time of a worker-iteration", "workers", "all", *PARTS)
    for workers, degree, iterations in SHORT if arguments.short else CASES:
        clocks, totals = [], []
        for _ in range(1 if arguments.short else arguments.repeat):
            totals.append(seconds(workers, degree, iterations))
            clocks.append(Clock())
            with measuring(clocks[-1]):
                seconds(workers, degree, iterations)
        parts = [min(clock.seconds[part] for clock in clocks) for part in PARTS]
        cells = (f"{1e6 * each / workers / iterations:,.0f}" for each in (min(totals), *parts))
        shown.add_row(str(workers), *cells)
    Console().print(shown)


if __name__ == "__main__":
    main()
