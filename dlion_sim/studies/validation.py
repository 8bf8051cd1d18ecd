"""Validation: a scenario simulated, emulated and compared."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from dlion_sim.analysis import Fidelity, compare
from dlion_sim.emulation import emulate
from dlion_sim.figures import plot_fidelity
from dlion_sim.results import Run
from dlion_sim.results.atomic import json_bytes, write
from dlion_sim.scenario import Scenario
from dlion_sim.simulation import Progress, simulate

DOCUMENT, FIGURE = "fidelity.json", "fidelity.png"
SIMULATED, EMULATED = "simulated", "emulated"
"""The runs' folders."""


@dataclass(frozen=True)
class Validation:
    """Two runs of one scenario, and their differences."""

    simulated: Run
    real: Run
    fidelity: Fidelity
    figure: Path


def validate(
    scenario: Scenario,
    folder: Path,
    *,
    simulating: AbstractContextManager[Callable[[Progress], None]],
    emulating: AbstractContextManager[Callable[[float | None], None]],
    fair: bool = True,
    force: bool = False,
    interrupted: Callable[[], bool] = lambda: False,
) -> Validation:
    """Simulate a scenario, emulate it and compare, all into `folder`.

    `simulating` and `emulating` are entered during either run, and yield callbacks for its progress. Other arguments
    and errors as for `simulate` and `emulate`.
    """
    with simulating as observe:
        simulated = simulate(
            scenario, folder / SIMULATED, force=force, device="cpu", interrupted=interrupted, observe=observe
        )
    with emulating as observe_clock:
        real = emulate(
            scenario,
            folder / EMULATED,
            device="cpu",
            fair=fair,
            force=force,
            interrupted=interrupted,
            observe=observe_clock,
        )
    return write_comparison(simulated, real, folder)


def write_comparison(simulated: Run, real: Run, folder: Path) -> Validation:
    """Compare two runs of one scenario, and write the figure and the document to `folder`.

    Raises InputError if they cannot be compared.
    """
    fidelity = compare(simulated, real)
    folder.mkdir(parents=True, exist_ok=True)
    figure = plot_fidelity(simulated, real, folder / FIGURE)
    write(folder / DOCUMENT, json_bytes(fidelity.document))
    return Validation(simulated, real, fidelity, figure)
