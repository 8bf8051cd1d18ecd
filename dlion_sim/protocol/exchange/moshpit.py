"""Parameters averaged in the groups of a grid (Moshpit SGD: Ryabinin et al., NeurIPS'21, arXiv:2103.03239)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from pydantic import Field
from torch import Tensor

from dlion_sim.errors import InputError
from dlion_sim.protocol.choices import Setup
from dlion_sim.protocol.exchange.groups import GroupExchange
from dlion_sim.protocol.registry import SYSTEMS, Composition, register
from dlion_sim.streams import stream

Cells = npt.NDArray[np.intp]
"""The grid's cell of each worker [workers, dimensions], not to be written."""
_MOST_KNOWN = 64
"""Rounds to keep, as workers are in different ones."""


@register("exchange", "moshpit")
class MoshpitExchange(GroupExchange):
    """After local steps, workers average their parameters in groups: the rows of a grid, then its columns, and so on.

    Workers are in random cells of a grid. After each averaging, those of a group are dealt to the group's cells anew,
    as in the paper each takes the index of the chunk that it averaged. If all cells are taken, parameters are equal
    after as many rounds as the grid has dimensions; absent workers leave cells empty. Each sends its parameters to all
    others of its group, where the paper reduces them in chunks, 2 (m - 1) / m models in a group of m.
    """

    class Parameters(GroupExchange.Parameters):
        """The grid."""

        dimensions: int = Field(2, ge=1, le=8, description="Of the grid.")
        side: int | None = Field(
            None, ge=1, description="Cells in each dimension; by default the fewest that are enough for all workers."
        )

    parameters: Parameters
    kind = "moshpit"

    def __init__(self, parameters: Parameters, setup: Setup) -> None:
        super().__init__(parameters, setup)
        workers, dimensions = setup.workers, parameters.dimensions
        least = next(side for side in range(1, workers + 1) if side**dimensions >= workers)
        self._side = parameters.side or least
        if self._side < least:
            problem = f"a grid of {self._side}^{dimensions} cells is too small for {workers} workers"
            raise InputError(problem, path="side", allowed=f"{least} or more")

    def next_start(self, mean: Tensor) -> Tensor:
        return mean

    def group(self, number: int) -> Sequence[int]:
        dimensions = self.parameters.dimensions
        cells = grid(self.setup.seed, self.setup.workers, self._side, dimensions, number)
        others = np.delete(np.arange(dimensions), number % dimensions)
        same = (cells[:, others] == cells[self.setup.worker, others]).all(axis=1)
        return [int(worker) for worker in np.flatnonzero(same) if worker != self.setup.worker]


def grid(seed: int, workers: int, side: int, dimensions: int, number: int) -> Cells:
    """The cells in averaging round `number`, from 1 on, which is along axis `number` modulo dimensions."""
    known = _known(seed, workers, side, dimensions)
    if number not in known:
        last = max((each for each in known if each < number), default=1)
        cells = known[last] if last in known else _first(seed, workers, side, dimensions)
        for each in range(last + 1, number + 1):
            cells = _dealt(cells, (each - 1) % dimensions, side, stream(seed, "moshpit", each))
        if len(known) >= _MOST_KNOWN:
            known.clear()
        known[number] = cells
    return known[number]


@lru_cache(maxsize=4)
def _known(seed: int, workers: int, side: int, dimensions: int) -> dict[int, Cells]:
    """Rounds computed so far, which all workers of a process share."""
    return {}


def _first(seed: int, workers: int, side: int, dimensions: int) -> Cells:
    taken = stream(seed, "moshpit").choice(side**dimensions, workers, replace=False)
    return np.stack(np.unravel_index(taken, (side,) * dimensions), axis=1)


def _dealt(before: Cells, axis: int, side: int, rng: np.random.Generator) -> Cells:
    """The cells after an averaging along an axis."""
    cells = before.copy()
    _, groups = np.unique(np.delete(before, axis, axis=1), axis=0, return_inverse=True)
    for group in range(groups.max() + 1):
        members = np.flatnonzero(groups == group)
        cells[members, axis] = rng.permutation(side)[: len(members)]
    return cells


SYSTEMS["moshpit"] = Composition("Ryabinin et al., NeurIPS'21", exchange={"kind": "moshpit"})
