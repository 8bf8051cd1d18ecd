"""Assembling messages of which packets are missing (DLCP, arXiv 2008.08445).

Missing gradients count as zero, which is the paper's rule; or the rest is scaled up, so that the message is unbiased;
or the sender's previous gradients are used. For missing parameters, the previous ones are used. A sparse message has
the pairs of index and value that arrived.
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
"""The kind, first entry and number of values of messages that replace one another."""
_MOST_KEPT = 2
"""The most values kept of one sender, in models: a ring's partial and complete chunks."""


class Assembler:
    """Completes the messages that one participant receives, for models of a `layout`.

    It keeps senders' last messages if these replace missing values.
    """

    def __init__(self, dlcp: Dlcp, layout: Layout, workers: int) -> None:
        self._fill = dlcp.fill
        self._size = layout.size
        self._workers = workers
        self._last: dict[int, dict[_Place, Tensor]] = {}
        """Values by sender and place, the newest last."""

    def must_be_whole(self, message: Message) -> bool:
        """Whether no packet may be missing, as there are no previous parameters of the sender."""
        is_dense_parameters = message.body.stage not in GRADIENTS and len(message.tensors) == 1
        return is_dense_parameters and self._previous(message) is None

    def assemble(self, message: Message, have: NDArray[np.uint8]) -> Message:
        """The message that the receiver gets, given the received packets `have` [n].

        It is `message` itself if none is missing. Entries of missing packets are not read, and no tensor is written.
        """
        received = message if have.all() else self._filled(message, have.astype(bool))
        if self._is_stale(message):
            self._keep(received)
        return received

    def lost(self, sender: int) -> None:
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
        """Whether a previous message replaces missing values."""
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
