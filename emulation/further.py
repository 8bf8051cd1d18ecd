"""What else is compared of a scenario: emulations with each other, simulations with each other, and simulations packet
by packet or by flows without queues with the emulation.

Two emulations are not alike to the percent, and emulated links not as wide to the percent as they are asked to be. Some
systems make much of little: for whom a worker of AD-PSGD waits depends on who came first. What is foretold can be no
nearer than emulations are to each other, or simulations whose bandwidths are a little off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from dlion_sim.analysis import compare
from dlion_sim.cli.progress import clock_bar, progress_bar
from dlion_sim.emulation import check_requirements, emulate
from dlion_sim.emulation.shaping import LEAST_BURST_FRAMES, LEAST_FLOW_QUEUE_FRAMES
from dlion_sim.errors import InputError
from dlion_sim.results import Run
from dlion_sim.scenario import Packets, Reliable, Scenario, dump, from_data
from dlion_sim.scenario.network import FULL_FRAME
from dlion_sim.scenario.units import BANDWIDTH
from dlion_sim.simulation import simulate
from dlion_sim.streams import stream
from dlion_sim.studies.validation import EMULATED, SIMULATED

Verdict = Mapping[str, float]
"""How far runs are apart, as a `Fidelity` has it."""
Further = Callable[[Scenario, Path, Callable[[], bool]], Verdict]
"""Runs a scenario in the folder of its comparison, until interrupted, and says how far that is from what is there.

Raises InputError where it cannot be run so, or was interrupted.
"""
NEIGHBOURS = 4
OFF = 0.01
"""Of a bandwidth, at most."""


def neighbours(scenario: Scenario, folder: Path, interrupted: Callable[[], bool]) -> Verdict:
    """How far the most different of a few simulations, with every bandwidth a little off, is from the one there."""
    simulated = Run.open(folder / SIMULATED)
    verdicts = [
        compare(simulated, _simulated(neighbour_of(scenario, number), folder / "neighbour", interrupted)).verdict
        for number in range(NEIGHBOURS)
    ]
    return {name: max(verdict[name] for verdict in verdicts) for name in verdicts[0]}


def emulated_again(scenario: Scenario, folder: Path, interrupted: Callable[[], bool]) -> Verdict:
    """How far another emulation is from the first."""
    check_requirements()
    with clock_bar(scenario, quiet=False) as observe:
        again = emulate(scenario, folder / "again", device="cpu", force=True, interrupted=interrupted, observe=observe)
    _check_ended(again)
    return compare(Run.open(folder / EMULATED), again).verdict


def by_packets(scenario: Scenario, folder: Path, interrupted: Callable[[], bool]) -> Verdict:
    """How far the emulation is from a simulation whose network has the queues that the emulated one had."""
    real = Run.open(folder / EMULATED)
    alike = with_queues(scenario, are_delayed=real.manifest["emulation"]["delay"] == "kernel")
    return compare(_simulated(alike, folder / "packets", interrupted), real).verdict


def by_default(scenario: Scenario, folder: Path, interrupted: Callable[[], bool]) -> Verdict:
    """How far the emulation is from a simulation by the default model of networks: flows without queues."""
    alike = from_data({**yaml.safe_load(dump(scenario)), "network": {}})
    return compare(_simulated(alike, folder / "default", interrupted), Run.open(folder / EMULATED)).verdict


FURTHER: Mapping[str, Further] = {
    "neighbours": neighbours,
    "again": emulated_again,
    "packets": by_packets,
    "default": by_default,
}


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


def with_queues(scenario: Scenario, *, are_delayed: bool) -> Scenario:
    """The scenario with its network packet by packet: a queue for each connection, as emulated links have one for each
    flow, and round trips on links only if packets `are_delayed`. One that says its queues is emulated with these.

    Of what waits for an emulated link, one packet is on the wire here; what its bucket holds, and may owe, is a burst.
    """
    if isinstance(scenario.network.model, Packets):
        return scenario
    emulated = scenario.network.model.queue or LEAST_FLOW_QUEUE_FRAMES * FULL_FRAME
    size = f"{round(emulated / FULL_FRAME) - 1} packets"
    model = {
        "kind": "packets",
        "fair": True,
        **dict.fromkeys(("buffer", "drop_above", "mark_above"), size),
        "burst": f"{LEAST_BURST_FRAMES + 1} packets",
        "delays": "links" if are_delayed else "receivers",
    }
    written = yaml.safe_load(dump(scenario))
    if isinstance(scenario.transport, Reliable):
        written["transport"]["recovery"] = "linux"
    return from_data({**written, "network": {"model": model}})


def _simulated(scenario: Scenario, folder: Path, interrupted: Callable[[], bool]) -> Run:
    with progress_bar(scenario, quiet=False) as observe:
        run = simulate(scenario, folder, force=True, device="cpu", interrupted=interrupted, observe=observe)
    _check_ended(run)
    return run


def _check_ended(run: Run) -> None:
    status = (run.summary or {}).get("status")
    if status != "completed":
        raise InputError(f"is {status}", file=run.folder, allowed="a run that was completed")
