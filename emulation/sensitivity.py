"""How much simulations of a folder's scenarios change when each bandwidth is a little different.

Emulated links are not exact to a percent, and some systems make much of little: what a worker of AD-PSGD waits for
depends on who came first. So each scenario is simulated a few times more with every bandwidth off by up to a percent,
at random, and compared with its simulation in the output folder of `emulation.validate`, whose table then tells of
that, too. It needs no quiet machine; what is done already is not done again.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from dlion_sim.analysis import compare
from dlion_sim.cli.conventions import BAD_INPUT, INTERRUPTED
from dlion_sim.errors import InputError
from dlion_sim.interrupts import Interrupts
from dlion_sim.results import Run
from dlion_sim.results.atomic import json_bytes, write
from dlion_sim.scenario import Scenario, dump, from_data
from dlion_sim.scenario.units import BANDWIDTH
from dlion_sim.simulation import simulate
from dlion_sim.streams import stream
from dlion_sim.validation import SIMULATED
from emulation.distribution import FIGURES
from emulation.validate import SENSITIVITY, parsed, scenarios_in

NEIGHBOURS = 4
OFF = 0.01
"""Of a bandwidth, at most."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate what is missing, and return how to exit."""
    program = "emulation.sensitivity"
    options = parsed(arguments, program=program, about=__doc__, output="That of emulation.validate.")
    try:
        scenarios = scenarios_in(options.folder)
        with Interrupts() as interrupts:
            for number, (name, scenario) in enumerate(scenarios.items(), 1):
                folder = options.output / name
                if not (folder / SENSITIVITY).exists():
                    print(f"{number} of {len(scenarios)}: {name}", file=sys.stderr)
                    found = sensitivity(scenario, folder)
                    write(folder / SENSITIVITY, json_bytes(found))
                if interrupts.asked():
                    return INTERRUPTED
    except InputError as error:
        print(f"{program}: {error}", file=sys.stderr)
        return BAD_INPUT
    return 0


def sensitivity(scenario: Scenario, folder: Path) -> Mapping[str, float | None]:
    """By how much the most different neighbour differs from the simulation in `folder`, by figure; None is unknown.

    Raises InputError where that simulation cannot be read.
    """
    simulated = Run.open(folder / SIMULATED)
    verdicts = []
    for number in range(NEIGHBOURS):
        neighbour = simulate(
            neighbour_of(scenario, number), folder / "neighbours" / str(number), force=True, device="cpu"
        )
        verdicts.append(compare(simulated, neighbour).verdict)
    worst = {name: max(verdict[name] for verdict in verdicts) for name in FIGURES}
    return {name: value if math.isfinite(value) else None for name, value in worst.items()}


def neighbour_of(scenario: Scenario, number: int) -> Scenario:
    """The scenario with each bandwidth, and each step of one, multiplied by a factor from 1 - OFF to 1 + OFF."""
    written = yaml.safe_load(dump(scenario))
    draw = stream(scenario.seed, "neighbour", number)
    return from_data({**written, "cluster": _off(written["cluster"], draw)})


def _off(written: Any, draw: np.random.Generator) -> Any:
    match written:
        case dict():
            return {key: _off(value, draw) for key, value in written.items()}
        case list():
            return [_off(value, draw) for value in written]
        # A resolved scenario's texts in such a unit are bandwidths.
        case str() if written.endswith("bps"):
            return BANDWIDTH.format(BANDWIDTH.parse(written) * draw.uniform(1 - OFF, 1 + OFF))
    return written


if __name__ == "__main__":
    sys.exit(main())
