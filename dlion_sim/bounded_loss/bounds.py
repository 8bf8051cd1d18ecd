"""Bounds of the missing bytes of a message: by stage, by variable, by iteration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dlion_sim.bounded_loss.cutting import Variables, packets, payloads, starts
from dlion_sim.learning.flat import Layout
from dlion_sim.protocol.messages import Message
from dlion_sim.scenario import Dlcp

_ROUNDING = 1e-6
"""Bytes: 0.7 of 10 packets are 7, also with rounding errors."""


@dataclass(frozen=True, eq=False)
class Bound:
    """The bounds of a message, by groups of packets: all of them, or those of a variable."""

    group: NDArray[np.int32]
    """The group of each packet [n]."""
    allowed: NDArray[np.int64]
    """Bytes of each group that may be missing [groups]."""


class Bounds:
    """The bounds of a run's messages, of models laid out as `layout` says, in a run of `workers` workers.

    Raises InputError for a bound of a variable that the model does not have.
    """

    def __init__(self, dlcp: Dlcp, layout: Layout, workers: int) -> None:
        self._dlcp = dlcp
        self._layout = layout
        self._workers = workers
        self._by_stage = dlcp.bounds
        self._by_variable = np.array(dlcp.by_variable(layout.names), np.float64)
        """NaN for variables without a bound of their own."""
        self._variables = Variables(layout)

    def of(self, message: Message, *, whole: bool = False) -> Bound:
        """The bound of a message, of which only the tensors' lengths are read; nothing may be missing if `whole`."""
        assert message.body.stage is not None
        part = 0.0 if whole else self._by_stage[message.body.stage] * self._factor(message)
        # The receiver of a sparse message does not know its indices in advance.
        if not self._dlcp.by_tensor or len(message.tensors) == 2:
            group, parts = np.zeros(packets(message), np.int32), np.array([part])
        else:
            variable = self._variables.of(starts(message, self._layout, self._workers))
            present, inverse = np.unique(variable, return_inverse=True)
            group = inverse.astype(np.int32)
            named = self._by_variable[present] * self._factor(message)
            parts = np.where(np.isnan(named), part, named) if part else np.zeros(len(present))
        sizes = np.bincount(group, payloads(message), len(parts))
        return Bound(group, np.floor(parts * sizes + _ROUNDING).astype(np.int64))

    def _factor(self, message: Message) -> float:
        """The factor of bounds in the phase of a message's iteration."""
        iteration = getattr(message.body, "iteration", -1)
        return next((phase.factor for phase in reversed(self._dlcp.phases) if phase.since <= iteration), 1.0)
