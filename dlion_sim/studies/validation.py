"""Holding a simulated run against a real one."""

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
    """Two runs of one scenario, and how far they are apart."""

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

    `simulating` and `emulating` are entered for as long as the one and the other take; what they give is told how far
    it is. Other arguments and errors as for `simulate` and `emulate`.
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
    return held_against(simulated, real, folder)


def held_against(simulated: Run, real: Run, folder: Path) -> Validation:
    """Compare two runs of one scenario; the figure and then the document of it are written to `folder`.

    Raises InputError where they cannot be compared.
    """
    fidelity = compare(simulated, real)
    folder.mkdir(parents=True, exist_ok=True)
    figure = plot_fidelity(simulated, real, folder / FIGURE)
    write(folder / DOCUMENT, json_bytes(fidelity.document))
    return Validation(simulated, real, fidelity, figure)
