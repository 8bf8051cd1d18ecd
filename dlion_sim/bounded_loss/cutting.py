"""Cutting a message of which a part may be missing into packets (DLCP, arXiv 2008.08445).

A packet holds whole entries, so that each can be used alone: up to 356 consecutive values of a dense message, or up to
178 pairs of index and value of a sparse one. Packets are numbered in the tensors' order: both ends know the entries of
each packet from the number of entries. The header is sent first, reliably.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dlion_sim.learning.flat import Layout
from dlion_sim.protocol.messages import GRADIENTS, Message
from dlion_sim.scenario import Dlcp, Transport

PAYLOAD = 1424
"""Bytes of entries in a packet: a frame of 1514 less 14 of Ethernet, 20 of IP, 8 of UDP, header 32, tag 16."""
_BYTES_PER_ENTRY = 4
_CUT = ([torch.float32], [torch.int32, torch.float32])


def is_cut(message: Message, transport: Transport) -> bool:
    """Whether a message is sent in packets of which some may be missing; otherwise it is sent reliably."""
    return isinstance(transport, Dlcp) and message.body.stage is not None and _has_values(message.tensors)


def packets(message: Message) -> int:
    """The number of packets of a message."""
    return -(-_entries(message) // per_packet(message))


def per_packet(message: Message) -> int:
    """Entries, or pairs of index and value, in a packet of a message; its last one may have fewer."""
    return PAYLOAD // (_BYTES_PER_ENTRY * len(message.tensors)) if message.tensors else 1


def payloads(message: Message) -> NDArray[np.int64]:
    """Bytes of entries in each packet of a message [n]."""
    each, entries = per_packet(message), _entries(message)
    counts = np.full(packets(message), each, np.int64)
    counts[-1:] -= len(counts) * each - entries
    return counts * _BYTES_PER_ENTRY * len(message.tensors)


def starts(message: Message, layout: Layout, workers: int) -> NDArray[np.int64]:
    """The first entry of the model in each packet of a message [n], in a run of `workers` workers."""
    firsts = np.arange(packets(message), dtype=np.int64) * per_packet(message)
    if len(message.tensors) == 2:
        return message.tensors[0].cpu().numpy()[firsts].astype(np.int64)
    return firsts + message.body.first_entry(message.sender, workers, layout.size)


@dataclass(frozen=True, eq=False)
class Cut:
    """The packets of a message, with their properties; arrays [n]."""

    payloads: NDArray[np.int64]
    """Bytes of entries."""
    variable: NDArray[np.int32]
    """The model's variable that the first of them lies in."""
    large: NDArray[np.bool_]
    """Whether its mean magnitude is among the largest of its variable's packets."""
    priority: NDArray[np.int8]
    """Of the queue in switches, 0 for the first."""
    protected: NDArray[np.bool_]
    """Whether switches mark it where they drop others."""
    order: NDArray[np.int32]
    """The numbers of the packets in the order of sending."""


class Cutter:
    """Cuts a run's messages, of models laid out as `layout` says, for switches with so many `priorities`."""

    def __init__(self, dlcp: Dlcp, layout: Layout, workers: int, priorities: int = 8) -> None:
        self._dlcp = dlcp
        self._layout = layout
        self._workers = workers
        self._priorities = priorities
        self._variables = Variables(layout)

    def cut(self, message: Message) -> Cut:
        dlcp, count = self._dlcp, len(self._layout.sizes)
        variable = self._variables.of(starts(message, self._layout, self._workers))
        large = _large(_mean_magnitudes(message), variable, dlcp.quantile)
        in_order = dlcp.order == "layer" and message.body.stage in GRADIENTS
        return Cut(
            payloads(message),
            variable,
            large,
            (self._priorities * variable.astype(np.int64) // count * in_order).astype(np.int8),
            ~self._droppable(variable < dlcp.front * count, ~large),
            self._order(message, variable, large).astype(np.int32),
        )

    def _order(self, message: Message, variable: NDArray[np.int32], large: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The packets' numbers [n] in the order of sending. The last ones are not waited for: of gradients, small ones
        of front layers; of parameters, different ones each time."""
        numbers = np.arange(len(variable))
        if message.body.stage not in GRADIENTS:
            values = message.tensors[-1][: per_packet(message)].cpu().numpy()
            return np.roll(numbers, -(crc32(values.tobytes()) % len(numbers)))
        if self._dlcp.order == "none":
            return numbers
        return np.lexsort((numbers, np.where(large, variable, -variable), ~large))

    def _droppable(self, front: NDArray[np.bool_], small: NDArray[np.bool_]) -> NDArray[np.bool_]:
        match self._dlcp.drop:
            case "layer":
                return front
            case "magnitude":
                return small
            case "layer+magnitude":
                return front & small
            case _:
                return np.zeros_like(front)


class Variables:
    """The variables of the model's entries."""

    def __init__(self, layout: Layout) -> None:
        self._ends = np.cumsum(layout.sizes)

    def of(self, entries: NDArray[np.int64]) -> NDArray[np.int32]:
        return np.searchsorted(self._ends, entries, side="right").astype(np.int32)


def _has_values(tensors: tuple[Tensor, ...]) -> bool:
    """Whether they are values, or pairs of index and value, of one entry or more."""
    kinds = [tensor.dtype for tensor in tensors]
    return kinds in _CUT and {len(tensor) for tensor in tensors} == {max(1, len(tensors[0]))}


def _entries(message: Message) -> int:
    """Entries, or pairs of index and value."""
    return message.tensors[-1].numel() if message.tensors else 0


def _mean_magnitudes(message: Message) -> NDArray[np.floating[Any]]:
    """Mean |value| of each packet [n]."""
    magnitudes = np.abs(message.tensors[-1].cpu().numpy())
    each = per_packet(message)
    whole = len(magnitudes) // each * each
    means = magnitudes[:whole].reshape(-1, each).mean(axis=1)
    return np.append(means, magnitudes[whole:].mean()) if whole < len(magnitudes) else means


def _large(means: NDArray[np.floating[Any]], variable: NDArray[np.int32], quantile: float) -> NDArray[np.bool_]:
    """Whether each packet's mean reaches the interpolated `quantile` of the means of its variable's packets."""
    by_variable = np.lexsort((means, variable))
    means_sorted, variables = means[by_variable].astype(np.float64), variable[by_variable]
    _, first, group, count = np.unique(variables, return_index=True, return_inverse=True, return_counts=True)
    place = quantile * (count - 1)
    below = np.floor(place).astype(np.int64)
    above = np.minimum(below + 1, count - 1)
    low, high = means_sorted[first + below], means_sorted[first + above]
    least = low + (high - low) * (place - below)
    large = np.empty(len(means), np.bool_)
    large[by_variable] = means_sorted >= least[group]
    return large
