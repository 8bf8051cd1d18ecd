"""What a participant gets of a message of which packets are missing (DLCP, arXiv 2008.08445).

Of gradients what is missing counts as zero, which is the paper's rule; or the rest is scaled up, so that the message is
right in the mean; or the sender's previous ones stand in. Parameters that are missing are always the previous ones. A
sparse message has the pairs of index and value that came.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dlion_sim.bounded_loss.cutting import per_packet
from dlion_sim.learning.flat import Layout
from dlion_sim.protocol.messages import GRADIENTS, Body, Message
from dlion_sim.scenario import Dlcp

_Place = tuple[type[Body], int, int]
"""What messages replace one another: their kind, and the first entry and the number of their values."""
_MOST_KEPT = 2
"""Models' worth of values, of one sender: a ring's chunks on their way and its sums."""


class Assembler:
    """Makes whole messages of what one participant receives, of models laid out as `layout` says.

    It keeps senders' last messages where those stand in for what is missing.
    """

    def __init__(self, dlcp: Dlcp, layout: Layout, workers: int) -> None:
        self._fill = dlcp.fill
        self._size = layout.size
        self._workers = workers
        self._last: dict[int, dict[_Place, Tensor]] = {}
        """Values by sender and place, the newest last."""

    def must_be_whole(self, message: Message) -> bool:
        """Whether nothing could stand in for what is missing: of parameters that the sender has not sent before."""
        is_dense_parameters = message.body.stage not in GRADIENTS and len(message.tensors) == 1
        return is_dense_parameters and self._previous(message) is None

    def assemble(self, message: Message, have: NDArray[np.uint8]) -> Message:
        """The message that its receiver gets, given which packets are there, `have` [n].

        It is `message` itself where all are. Others' entries are not looked at, and none of its tensors is written.
        """
        received = message if have.all() else self._filled(message, have.astype(bool))
        if self._is_stale(message):
            self._keep(received)
        return received

    def lost(self, sender: int) -> None:
        """Nothing more comes of that sender."""
        self._last.pop(sender, None)

    def _filled(self, message: Message, have: NDArray[np.bool_]) -> Message:
        *indices, values = message.tensors
        mask = np.repeat(have, per_packet(message))[: len(values)]
        there = torch.from_numpy(mask).to(values.device)
        if indices:
            tensors = [each[there] for each in message.tensors]
        else:
            previous = self._previous(message) if self._is_stale(message) else None
            tensors = [torch.where(there, values, torch.zeros_like(values) if previous is None else previous)]
        if self._fill == "rescale" and message.body.stage in GRADIENTS:
            tensors[-1] *= len(mask) / max(1, int(np.count_nonzero(mask)))
        return replace(message, tensors=tuple(tensors))

    def _is_stale(self, message: Message) -> bool:
        """Whether a previous message stands in for what is missing."""
        return len(message.tensors) == 1 and (self._fill == "stale" or message.body.stage not in GRADIENTS)

    def _previous(self, message: Message) -> Tensor | None:
        return self._last.get(message.sender, {}).get(self._place(message))

    def _keep(self, message: Message) -> None:
        last = self._last.setdefault(message.sender, {})
        place = self._place(message)
        last.pop(place, None)
        last[place] = message.tensors[0]
        while sum(map(len, last.values())) > _MOST_KEPT * self._size:
            del last[next(iter(last))]

    def _place(self, message: Message) -> _Place:
        first = message.body.first_entry(message.sender, self._workers, self._size)
        return type(message.body), first, message.tensors[0].numel()
