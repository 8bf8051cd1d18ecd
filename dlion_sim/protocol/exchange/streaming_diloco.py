"""Outer optimization of one fragment of the parameters after another (Streaming DiLoCo: Douillard et al., 2025).

arXiv:2501.18512; eager updates: Kale et al., 2025, arXiv:2502.12996. Rules and defaults as in torchft's `local_sgd.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from dlion_sim.errors import InputError
from dlion_sim.learning.flat import Layout
from dlion_sim.protocol.choices import ChoiceParameters, Exchange, Setup
from dlion_sim.protocol.exchange.periodic import nesterov
from dlion_sim.protocol.messages import Contribution, MalformedMessageError, Shapes, Stage
from dlion_sim.protocol.quantization import Precision, are_encoded, check_encoded, decode, encode
from dlion_sim.protocol.registry import SYSTEMS, Composition, register
from dlion_sim.protocol.updates import Incoming, LocalGradient, Outgoing, Update

Order = Literal["strided", "sequential", "balanced"]


class Fragment(Contribution, frozen=True, array_like=True):
    """A worker's parameters in a fragment, or by how much they have moved since its last outer step, in any precision.
    None may be missing: a worker without some of them would differ from then on."""

    wire_kind: ClassVar[str] = "fragment"
    stage: ClassVar[Stage | None] = None

    def fits(self, shapes: Shapes, parameters: int) -> bool:
        return are_encoded(shapes, parameters)


@register("exchange", "streaming_diloco")
class StreamingDiLoCoExchange(Exchange):
    """As DiLoCo, but one fragment of the parameters at a time, exchanged during `delay` iterations.

    A fragment is exchanged every `period` / `fragments` iterations. Each worker sends its pseudo-gradient of it,
    continues for `delay` iterations, takes the outer step with the mean of all, and mixes the result with its own
    parameters. Workers that see the same pseudo-gradients take the same outer steps; one that reaches only some, as its
    sender fails, leaves them apart by it. With one fragment, no delay, `alpha` 0 and FP32 it is DiLoCo.
    """

    joins_with_state = True
    receives = (Fragment,)

    class Parameters(ChoiceParameters):
        """Defaults: the paper's, but for fewer `fragments`, as models here have few layers."""

        period: int = Field(100, ge=1, description="Iterations between two exchanges of the same fragment.")
        fragments: int = Field(2, ge=1, description="Parts of the model, each of whole layers; they divide `period`.")
        order: Order = Field(
            "strided",
            description="strided: fragment f has layers f, f + fragments, ...; balanced: sizes as equal as can be.",
        )
        delay: int = Field(5, ge=0, description="Iterations from sending to the outer step; < `period` / `fragments`.")
        alpha: float = Field(
            0.5, ge=0, le=1, description="Weight of the own parameters; with 0, progress since sending is dropped."
        )
        outer_learning_rate: float = Field(0.4, gt=0, description="Of the outer optimizer.")
        outer_momentum: float = Field(0.9, ge=0, lt=1, description="Nesterov's, of the outer optimizer.")
        precision: Precision = Field(
            "fp4",
            description="Of the pseudo-gradients sent (in fp32, parameters). fp4 is E3M0; it and int8 have a scale for "
            "1,024 values.",
        )
        eager: bool = Field(
            False,
            description="Whether the outer step is at once, with its own pseudo-gradient and peers' stale ones.",
        )

    parameters: Parameters

    def __init__(self, parameters: Parameters, setup: Setup) -> None:
        super().__init__(parameters, setup)
        self._interval, rest = divmod(parameters.period, parameters.fragments)
        self._delay = 0 if parameters.eager else parameters.delay
        if rest or self._delay >= self._interval:
            problem = f"{parameters.fragments} fragments and a delay of {self._delay} do not fit {parameters.period}"
            allowed = "fragments that divide period, and a delay of less than period / fragments"
            raise InputError(problem, path="period", allowed=allowed)
        start = setup.replica.parameters.clone()
        layout, count, order = setup.replica.layout, parameters.fragments, parameters.order
        self._fragments = [entries.to(start.device) for entries in fragments_of(layout, count, order)]
        self._sends_parameters = parameters.precision == "fp32" and not parameters.eager
        self._start = start
        """The parameters [P] after the last outer step of each fragment: phi."""
        self._momentum = torch.zeros_like(start)
        self._contributions: dict[int, dict[int, Tensor]] = {}
        """What was sent in an iteration, by sender, until it is used."""
        self._applied = -1
        """The last iteration whose end this worker has reached."""
        self._sums, self._counts = torch.zeros_like(start), torch.zeros(count)
        """Sums [P] and numbers [fragments] of contributions that are in a state taken over."""
        self.common = self._start, self._momentum, self._sums, self._counts

    @classmethod
    def needs_lockstep(cls, parameters: Parameters) -> str:
        """A worker without some of the pseudo-gradients would stay apart."""
        return "exchange: streaming_diloco"

    def covers(self, tag: int) -> int:
        """It is needed at the outer step of its fragment, and none before the next outer step."""
        sent = (tag + 1 + self._delay) // self._interval
        later = self.parameters.fragments if self.parameters.eager else 0
        return (sent + 1 + later) * self._interval - 2

    def arrived(self, update: Update) -> None:
        steps = update.body.iteration + 1 + self._delay
        if steps % self._interval:
            raise MalformedMessageError("a fragment in an iteration in which none is sent")
        check_encoded(update.tensors, self.parameters.precision, len(self._entries(steps)))

    def outgoing(self, own: LocalGradient) -> Outgoing:
        """Step; send the fragment whose outer step is `delay` iterations later."""
        self.setup.replica.step(own.gradient)
        steps = own.iteration + 1 + self._delay
        if steps % self._interval:
            return Outgoing(None, [])
        entries = self._entries(steps)
        values = self.setup.replica.parameters[entries]
        tensors = encode(values if self._sends_parameters else self._start[entries] - values, self.parameters.precision)
        update = Update(self.setup.worker, Fragment(own.iteration, own.batch_size), tensors)
        self._take(update)
        return Outgoing(None, self.to_all(update))

    def apply(self, incoming: Incoming) -> int:
        for update in incoming.received:
            self._take(update)
        self._applied = incoming.iteration
        steps = incoming.iteration + 1
        if steps % self._interval:
            return 0
        sent = incoming.iteration - self._delay
        mine = self._contributions[sent].pop(self.setup.worker, None) if sent in self._contributions else None
        if self.parameters.eager:
            sent -= self.parameters.period
        values = self._contributions.pop(sent, {})
        applied = len(values)
        if mine is not None:
            values[self.setup.worker] = mine
        known = applied + (mine is not None) + int(self._counts[self._number(steps)])
        self._outer_step(steps, values, len(incoming.peers) + 1 if self.parameters.eager else known)
        return applied

    def _outer_step(self, steps: int, values: dict[int, Tensor], count: int) -> None:
        """Nesterov's step of a fragment, with the contributions by sender, as the mean of so many."""
        if not count:
            return
        fragment, entries = self._number(steps), self._entries(steps)
        mean = self._sums[entries] / count
        for sender in sorted(values):
            mean.add_(values[sender], alpha=1 / count)
        self._sums[entries], self._counts[fragment] = 0.0, 0
        start, momentum = self._start[entries], self._momentum[entries]
        gradient = start - mean if self._sends_parameters else mean
        nesterov(start, momentum, gradient, self.parameters.outer_learning_rate, self.parameters.outer_momentum)
        self._start[entries], self._momentum[entries] = start, momentum
        mine = self.setup.replica.parameters[entries]
        self.setup.replica.write_entries(entries, torch.lerp(start, mine, self.parameters.alpha))

    def state(self) -> Sequence[Tensor]:
        """phi, the outer momentum, and the contributions that are still to be used, summed by fragment.

        Without the own one of the present iteration: whoever gets this state gets that one as all others do.
        """
        sums, counts = self._sums.clone(), self._counts.clone()
        for iteration, values in self._contributions.items():
            steps = iteration + 1 + self._delay
            for sender, value in values.items():
                if sender != self.setup.worker or iteration <= self._applied:
                    sums[self._entries(steps)] += value
                    counts[self._number(steps)] += 1
        return [self._start.clone(), self._momentum.clone(), sums, counts]

    def _take(self, update: Update) -> None:
        steps = update.body.iteration + 1 + self._delay
        size = len(self._entries(steps))
        values = update.read(lambda tensors: decode(tensors, self.parameters.precision, size))
        self._contributions.setdefault(update.body.iteration, {})[update.sender] = values

    def _number(self, steps: int) -> int:
        """The fragment whose outer step is after so many iterations."""
        return (steps // self._interval - 1) % self.parameters.fragments

    def _entries(self, steps: int) -> Tensor:
        return self._fragments[self._number(steps)]


@lru_cache(maxsize=8)
def fragments_of(layout: Layout, count: int, order: Order) -> list[Tensor]:
    """The entries [m] of each fragment, which has whole layers: variables of a module.

    Raises InputError if there are fewer layers.
    """
    modules = [name.rpartition(".")[0] or name for name in layout.names]
    layers = {module: number for number, module in enumerate(dict.fromkeys(modules))}
    if count > len(layers):
        raise InputError(f"{count} fragments of {len(layers)} layers", path="fragments", allowed=f"1 to {len(layers)}")
    numbers = np.array([layers[module] for module in modules])
    blocks = np.concatenate(
        [np.full(len(part), index) for index, part in enumerate(np.array_split(range(len(layers)), count))]
    )
    by_order = {
        "strided": np.arange(len(layers)) % count,
        "sequential": blocks,
        "balanced": _balanced(layout, numbers, count),
    }
    of_variable = by_order[order][numbers]
    of_entry = np.repeat(of_variable, layout.sizes)
    return [torch.from_numpy(np.flatnonzero(of_entry == fragment)) for fragment in range(count)]


def _balanced(layout: Layout, numbers: np.ndarray, count: int) -> np.ndarray:
    """The fragment of each layer, if each goes, the largest first, where there is least."""
    sizes, filled = np.bincount(numbers, weights=layout.sizes), np.zeros(count)
    fragments = np.zeros(len(sizes), dtype=int)
    for layer in np.argsort(-sizes, kind="stable"):
        fragments[layer] = filled.argmin()
        filled[fragments[layer]] += sizes[layer]
    return fragments


SYSTEMS["streaming_diloco"] = Composition("Douillard et al., 2025", exchange={"kind": "streaming_diloco"})
