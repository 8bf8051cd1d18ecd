"""Messages of which a part may be missing: cutting, bounds, and assembling."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dlion_sim.assembly import Transfer
from dlion_sim.assembly.transfer import Loss, Part
from dlion_sim.bounded_loss.assembling import Assembler
from dlion_sim.bounded_loss.bounds import Bound, Bounds
from dlion_sim.bounded_loss.cutting import Cut, Cutter, is_cut
from dlion_sim.learning.flat import Layout
from dlion_sim.protocol.messages import Message
from dlion_sim.scenario import Dlcp
from dlion_sim.simulation.packets.parts import Pieces


class LossyMessages:
    """Such messages of a run of `workers` workers, with switches of so many `priorities`.

    Raises InputError for a bound of a variable that the model does not have.
    """

    def __init__(self, dlcp: Dlcp, layout: Layout, workers: int, priorities: int) -> None:
        self._dlcp = dlcp
        self._layout = layout
        self._workers = workers
        self._cutter = Cutter(dlcp, layout, workers, priorities)
        self._bounds = Bounds(dlcp, layout, workers)
        self._assemblers: dict[int, Assembler] = {}
        """By receiver."""

    @property
    def stops_early(self) -> bool:
        return self._dlcp.stop_early

    def are(self, message: Message) -> bool:
        return is_cut(message, self._dlcp)

    def cut(self, transfer: Transfer) -> tuple[Cut, Bound]:
        message = transfer.message
        whole = self._assembler(transfer.receiver).must_be_whole(message)
        return self._cutter.cut(message), self._bounds.of(message, whole=whole)

    def assemble(self, transfer: Transfer, pieces: Pieces) -> Message:
        return self._assembler(transfer.receiver).assemble(transfer.message, pieces.received)

    def _assembler(self, receiver: int) -> Assembler:
        if receiver not in self._assemblers:
            self._assemblers[receiver] = Assembler(self._dlcp, self._layout, self._workers)
        return self._assemblers[receiver]


def loss(cut: Cut, pieces: Pieces, *, resent: int, began: float, seconds: float) -> Loss:
    """The losses of a message that was cut, which began at `began` and was delivered after `seconds`."""
    lost = int(cut.payloads[pieces.received == 0].sum())
    saved = int(cut.payloads[pieces.sent == 0].sum())
    return Loss(lost, resent, saved, tuple(_parts(cut, pieces, began)), seconds)


def _parts(cut: Cut, pieces: Pieces, began: float) -> Iterator[Part]:
    keys, part = np.unique(2 * cut.variable + cut.large, return_inverse=True)
    sizes = np.bincount(part, cut.payloads)
    missing = np.bincount(part, cut.payloads * (pieces.received == 0))
    last = np.full(len(keys), -np.inf)
    np.fmax.at(last, part, pieces.arrived)
    for key, size, lost, time in zip(keys.tolist(), sizes.tolist(), missing.tolist(), last.tolist(), strict=True):
        yield Part(key // 2, bool(key % 2), int(size), int(lost), time - began if time > -np.inf else None)
