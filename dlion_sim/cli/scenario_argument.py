"""The scenario that a command is to run, and where its run goes."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dlion_sim.cli.conventions import RUNS
from dlion_sim.errors import InputError

if TYPE_CHECKING:
    from dlion_sim.scenario import Scenario


@contextmanager
def chosen(
    name: str, overrides: Sequence[str], output: Path | None, way: str | None = None
) -> Iterator[tuple[Scenario, Path]]:
    """The scenario `name` with `overrides`, and `output` or a new folder, whose name ends with the `way` it is run.

    What the scenario's file states and nothing reads is warned of. Bad input that comes up within the block is told
    with the scenario's file, and an error in the user's own code with the key that names it.
    """
    from dlion_sim.own_code import own_errors_told
    from dlion_sim.results import free_folder
    from dlion_sim.scenario import find, load
    from dlion_sim.scenario.loading import warnings
    from dlion_sim.scenario.overrides import located, read_all

    file = find(name)
    try:
        scenario = load(file, overrides)
    except InputError as error:
        from dlion_sim.protocol.compose import with_choices

        raise with_choices(error) from None
    for line in warnings(file, overrides, scenario):
        print(f"dlion: {line}", file=sys.stderr)
    parts = [scenario.name, scenario.system.name.replace(":", "."), f"seed{scenario.seed}", *([way] if way else [])]
    try:
        with own_errors_told(scenario.references):
            yield scenario, output or free_folder(RUNS / "-".join(parts))
    except InputError as error:
        raise located(error, read_all(overrides)).within(file) from None
