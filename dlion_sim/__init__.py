"""Simulate decentralized deep learning on many small clouds: real gradients, modelled machines and WAN links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dlion_sim.results import Frames, Run
    from dlion_sim.scenario import Scenario

__all__ = ["__version__", "load", "simulate"]

__version__ = version("dlion-sim")

# Both import what they need when they are called: importing the package alone costs next to nothing.


def load(path: str | Path) -> Frames:
    """The run in a folder, or all runs below it, as pandas tables.

    Args:
        path: A run folder, or a folder with any number of them below.

    Returns:
        The tables, each of which is read when it is first asked for.

    Raises:
        dlion_sim.errors.InputError: There is no run, or one that cannot be read.
    """
    from dlion_sim.results import Frames

    return Frames.of([Path(path)])


def simulate(
    scenario: str | Path | Mapping[str, Any] | Scenario,
    folder: str | Path,
    *,
    overrides: Sequence[str] | Mapping[str, object] = (),
    force: bool = False,
) -> Run:
    """Run a scenario in virtual time and return its run folder.

    Args:
        scenario: A YAML file, the name of a ready scenario, or a scenario's keys as they would stand in YAML.
        folder: The run folder to make.
        overrides: Values to set before, each "dotted.path=value", or by dotted path.
        force: Whether to replace a run that `folder` holds.

    Returns:
        The run, which has ended as its summary says.

    Raises:
        dlion_sim.errors.InputError: The scenario cannot be run, or the folder cannot be used.
    """
    from dlion_sim.scenario import Scenario, find, from_data, load
    from dlion_sim.scenario.overrides import Override
    from dlion_sim.simulation import simulate

    if isinstance(scenario, Scenario):
        scenario = scenario.model_dump(mode="json", by_alias=True, exclude_none=True)
    given = [Override.of(*each) for each in overrides.items()] if isinstance(overrides, Mapping) else overrides
    match scenario:
        case Mapping():
            loaded = from_data(dict(scenario), given)
        case _:
            loaded = load(find(scenario), given)
    return simulate(loaded, Path(folder), force=force)
