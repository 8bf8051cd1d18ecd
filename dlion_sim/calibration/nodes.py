"""Measuring by processes of this machine, a node each: over loopback, or in network namespaces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from dlion_sim.calibration.mesh import Outcome
from dlion_sim.live import Nodes, Spot


def measure_by_processes(
    spots: Sequence[Spot],
    names: Sequence[str],
    output: Path,
    *,
    seconds: float,
    interrupted: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Measure the paths between nodes at these places; node 0 writes `output` and its matrices. No process is left.

    `interrupted` is called many times per second. Raises InputError if a node cannot start.
    """
    first, *others = spots
    first = replace(first, options=[*first.options, f"--names={','.join(names)}", f"--output={output}"])
    command = ["calibrate", "node", f"--seconds={seconds}", "--quiet"]
    with TemporaryDirectory(prefix="dlion-") as folder, Nodes(Path(folder), command, [first, *others]) as nodes:
        if nodes.wait(interrupted):
            return Outcome(interrupted=True)
        return Outcome(failed=None if output.exists() else nodes.last_words(0))
