"""Which systems are tried where nobody says which, and the key parameters that each is tried with."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dlion_sim.scenario.overrides import set_value

SYSTEMS = ("dlion", "dlion_sparse", "ring_allreduce", "local_sgd", "diloco")
"""Beside the scenario's own. They differ in kind: what each link carries of gradients, the largest of what peers lack,
whole gradients in a ring, parameters now and then, and their movement as a gradient."""
KEY_PARAMETERS: Mapping[str, tuple[str, tuple[Any, ...]]] = {
    "dlion": ("exchange.n_min", (0.85, 10)),
    "dlion_sparse": ("exchange.density", (0.0003, 0.01)),
    "gaia": ("exchange.threshold", (0.01, 0.1)),
    "local_sgd": ("exchange.period", (4, 16)),
    "diloco": ("exchange.period", (20, 100)),
}
"""By system the parameter, a path below `system`, and the values that it is tried with."""


@dataclass(frozen=True)
class Tried:
    """A system to try."""

    labels: Mapping[str, str]
    """`system`, and what its key parameter is set to by its path."""
    spec: dict[str, Any]
    """As a scenario has it."""


def variants(own: Mapping[str, Any], names: Sequence[str]) -> Iterator[Tried]:
    """The systems of these names, with each value of their key parameters; that of the scenario's `own` as it says.

    Without names, the scenario's own and `SYSTEMS`.
    """
    for name in dict.fromkeys(names or (own["name"], *SYSTEMS)):
        spec = dict(own) if name == own["name"] else {"name": name}
        path, values = KEY_PARAMETERS.get(name, ("", ()))
        if not values or path.split(".")[0] in spec:
            yield Tried({"system": name}, spec)
            continue
        for value in values:
            changed = copy.deepcopy(spec)
            set_value(changed, path.split("."), value)
            yield Tried({"system": name, f"system.{path}": str(value)}, changed)
