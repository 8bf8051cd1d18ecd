"""State transfer: the state of a worker or server in parts, each a message."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import torch
from torch import Tensor

from dlion_sim.protocol.choices import Choice, Setup
from dlion_sim.protocol.membership_messages import State
from dlion_sim.protocol.messages import MalformedMessageError, Message


def messages(sender: int, iteration: int, tensors: Sequence[Tensor]) -> Iterator[Message]:
    """Messages with the state `tensors` of a worker or server at the beginning of `iteration`."""
    for part, tensor in enumerate(tensors):
        yield Message(sender, State(iteration, part, len(tensors)), (tensor,))


def state_of(setup: Setup, choices: Sequence[Choice], applied: Mapping[int, int]) -> list[Tensor]:
    """A worker's state: iterations of each worker that are applied in it, parameters and optimizer, choices.

    `applied`: the newest of these iterations by peer. Numbers are sent as float32, which is exact up to 2^24.
    """
    counts = torch.zeros(setup.workers)
    for peer, iteration in applied.items():
        counts[peer] = iteration + 1
    return [counts, *setup.replica.state(), *chain.from_iterable(choice.state() for choice in choices)]


def take_over(setup: Setup, choices: Sequence[Choice], tensors: Sequence[Tensor]) -> dict[int, int]:
    """Load a state of `state_of`, and return its `applied`."""
    counts, *rest = tensors
    remaining = iter(rest)
    setup.replica.take_over([next(remaining) for _ in setup.replica.state()])
    for choice in choices:
        choice.take_over([next(remaining) for _ in choice.state()])
    return {peer: int(count) - 1 for peer, count in enumerate(counts.tolist()) if count}


class StateTransfer:
    """The received parts of a requested state, at the beginning of iteration `least` or later.

    `sizes` [parts] are their lengths; where that is 0, `parameters` entries are allowed, too. The entries of the first
    `numbers` parts are whole numbers from 0 on.
    """

    def __init__(self, least: int, sizes: Sequence[int], parameters: int, numbers: int) -> None:
        self.iteration = least
        """That of the state, once a part has arrived."""
        self.tensors: list[Tensor] = []
        self._sizes = sizes
        self._parameters = parameters
        self._numbers = numbers

    @property
    def is_complete(self) -> bool:
        return len(self.tensors) == len(self._sizes)

    def take(self, message: Message) -> None:
        """Take in the next part. Raises MalformedMessageError, with nothing changed, if it is another one."""
        state, (tensor,) = message.body, message.tensors
        assert isinstance(state, State)
        number, parts = len(self.tensors), len(self._sizes)
        if (state.part, state.parts) != (number, parts):
            raise MalformedMessageError(f"part {state.part} of {state.parts} where {number} of {parts} is next")
        if state.iteration < self.iteration or (number and state.iteration > self.iteration):
            raise MalformedMessageError(f"the state of iteration {state.iteration} in place of {self.iteration}")
        if len(tensor) != self._sizes[number] and (self._sizes[number] or len(tensor) != self._parameters):
            raise MalformedMessageError(f"part {number} of a state has {len(tensor)} entries")
        if number < self._numbers and not bool(((tensor >= 0) & (tensor < 2**24) & (tensor == tensor.floor())).all()):
            raise MalformedMessageError(f"part {number} of a state has entries that are no iterations")
        self.iteration = state.iteration
        self.tensors.append(tensor)
