"""Outer optimization of fragments by a syncer that waits for a quorum (Decoupled DiLoCo, 2026, arXiv:2604.21428)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from pydantic import Field
from torch import Tensor

from dlion_sim.errors import InputError
from dlion_sim.protocol.choices import ChoiceParameters, Setup
from dlion_sim.protocol.events import Action, Send
from dlion_sim.protocol.exchange.async_local_sgd import PseudoGradient
from dlion_sim.protocol.exchange.hosted import Answer, HostedExchange, Sent
from dlion_sim.protocol.exchange.streaming_diloco import Order, fragments_of
from dlion_sim.protocol.messages import MalformedMessageError, Message
from dlion_sim.protocol.quantization import PseudoGradientPrecision, check_encoded, decode, encode
from dlion_sim.protocol.registry import SYSTEMS, Composition, register
from dlion_sim.protocol.updates import DENSE_ENTRY_BYTES, Incoming, LocalGradient, Outgoing


@dataclass
class _Round:
    """The publications of a fragment that wait for an outer step."""

    publications: dict[int, Message] = field(default_factory=dict)
    """By learner."""
    steps: int = 0
    """Of the syncer's worker, since the first one."""
    end: float | None = None
    """When the grace ends, in these steps, since there is a quorum."""


@register("exchange", "decoupled_diloco")
class DecoupledDiLoCoExchange(HostedExchange):
    """Learners publish pseudo-gradients by fragments; a syncer steps with a quorum, after a grace for others.

    The lowest-numbered worker that is there is the syncer. Grace is `margin` times the slack: `delay`, less the time
    until the quorum, less that of an answer by measured bandwidths, in steps of the syncer's worker; none while that
    worker waits. Pseudo-gradients are weighted by samples. The sum's direction is that of the mean direction, its
    length the mean length. Outer steps have Nesterov momentum, and their learners overwrite the fragment with the
    result: what they learned in it since they published is dropped, and counted. What comes later counts in the next
    outer step.
    """

    receives = (PseudoGradient, Answer)

    class Parameters(ChoiceParameters):
        """Rules as in the abstract and public notes; the paper's constants are not known."""

        period: int = Field(100, ge=1, description="Iterations between two publications of a fragment (chosen here).")
        fragments: int = Field(2, ge=1, description="Parts of the model; they divide `period` (chosen here).")
        order: Order = Field(
            "balanced", description="Which layers are in a fragment; balanced: sizes as equal as can be."
        )
        delay: int = Field(
            5, ge=0, description="tau: iterations until a learner waits for the answer; < `period` (chosen here)."
        )
        quorum: int | None = Field(
            None,
            ge=1,
            description="K: learners of an outer step. By default half (chosen here).",
        )
        margin: float = Field(0.5, ge=0, le=1, description="Part of the slack that is grace (chosen here).")
        radial: bool = Field(True, description="Mean length times mean direction; otherwise the plain mean.")
        plain: str = Field("embed", description="Variables whose name has this are averaged plainly (chosen here).")
        outer_learning_rate: float = Field(0.7, gt=0, description="Of the outer optimizer (DiLoCo's).")
        outer_momentum: float = Field(0.9, ge=0, lt=1, description="Nesterov's, of the outer optimizer (DiLoCo's).")
        precision: PseudoGradientPrecision = "fp32"

    parameters: Parameters

    def __init__(self, parameters: Parameters, setup: Setup) -> None:
        super().__init__(parameters, setup)
        self._interval, rest = divmod(parameters.period, parameters.fragments)
        if rest or parameters.delay >= parameters.period:
            problem = (
                f"{parameters.fragments} fragments and a delay of {parameters.delay} do not fit {parameters.period}"
            )
            raise InputError(problem, path="period", allowed="fragments that divide period, and a delay below period")
        layout = setup.replica.layout
        self._fragments = [
            each.to(self.start.device) for each in fragments_of(layout, parameters.fragments, parameters.order)
        ]
        embedded = torch.tensor([bool(parameters.plain) and parameters.plain in name for name in layout.names])
        self._is_plain = embedded.repeat_interleave(torch.tensor(layout.sizes)).to(self.start.device)
        self._samples = [0] * parameters.fragments
        """By fragment, since it was published or overwritten."""
        self._published: dict[int, tuple[int, int, int]] = {}
        """By fragment without an answer: iteration, syncer, samples."""
        self._answers: dict[int, Tensor] = {}
        self._is_idle = False
        """Whether this worker waits for an answer, or has done its iterations."""
        self._outer: tuple[Tensor, Tensor] | None = None
        """As syncer: phi and the momentum [P]."""
        self._rounds: dict[int, _Round] = {}
        first = self.there if self._is_syncer else set[int]()
        self._learners = [{worker for worker in first if self._publishes(f, 0)} for f in range(parameters.fragments)]
        """As syncer, by fragment: those that will publish it."""

    def outgoing(self, own: LocalGradient) -> Outgoing:
        self.setup.replica.step(own.gradient)
        self._samples = [samples + own.batch_size for samples in self._samples]
        for each in self._rounds.values():
            each.steps += 1
        sent = self._published_now(own) if (own.iteration + 1) % self._interval == 0 else []
        self._is_idle = not self.ready(own.iteration) or own.iteration + 1 == self.setup.iterations
        return Outgoing(None, [*sent, *self._close()])

    def _published_now(self, own: LocalGradient) -> Sent:
        number = self._number(own.iteration)
        entries, syncer = self._fragments[number], self.host(self.there)
        samples, self._samples[number] = self._samples[number], 0
        self._published[number] = own.iteration, syncer, samples
        pseudo_gradient = self.start[entries] - self.setup.replica.parameters[entries]
        body = PseudoGradient(own.iteration, samples, 0, max(own.seconds, 1e-9))
        return self.deliver(syncer, body, *encode(pseudo_gradient, self.parameters.precision))

    def ready(self, iteration: int) -> bool:
        late = (f for f, (sent, *_) in self._published.items() if iteration - sent >= self.parameters.delay)
        return all(number in self._answers for number in late)

    def apply(self, incoming: Incoming) -> int:
        self._is_idle = incoming.iteration + 1 == self.setup.iterations
        applied = len(self._answers)
        for number, values in self._answers.items():
            parameters, entries = self.setup.replica.parameters.clone(), self._fragments[number]
            parameters[entries] = self.start[entries] = values
            self.setup.replica.write(0, parameters)
            self._drop(number)
            del self._published[number]
        self._answers.clear()
        return applied

    def check(self, message: Message) -> None:
        assert isinstance(message.body, PseudoGradient | Answer)
        iteration = message.body.iteration
        if (iteration + 1) % self._interval:
            raise MalformedMessageError("a fragment of an iteration in which none is published")
        number = self._number(iteration)
        precision = self.parameters.precision if isinstance(message.body, PseudoGradient) else "fp32"
        check_encoded(message.tensors, precision, len(self._fragments[number]))

    def take(self, message: Message) -> Sent:
        body, sender = message.body, message.sender
        assert isinstance(body, PseudoGradient | Answer)
        number = self._number(body.iteration)
        if isinstance(body, Answer):
            # One that was lost for a while may answer what is no longer awaited.
            if self._published.get(number, (-1, -1))[:2] == (body.iteration, sender):
                self._answers[number] = message.tensors[0]
            return []
        self._rounds.setdefault(number, _Round()).publications[sender] = message
        self._learners[number].discard(sender)
        if self._is_syncer and self._publishes(number, body.iteration + 1):
            self._learners[number].add(sender)
        return self._close()

    def lost(self, peer: int) -> None:
        super().lost(peer)
        for number, (_, syncer, samples) in [*self._published.items()]:
            if syncer == peer and number not in self._answers:
                del self._published[number]
                self._drop(number, samples)
                entries = self._fragments[number]
                self.start[entries] = self.setup.replica.parameters[entries]
        for learners in self._learners:
            learners.discard(peer)

    def settled(self) -> list[Action]:
        """Without a lost learner, others may be a quorum."""
        return [Send(*each) for each in self._close()]

    def joined(self, peer: int, iteration: int) -> list[Action]:
        """It counts as a learner from its first publication on; if it is the syncer now, this one closes its rounds."""
        super().joined(peer, iteration)
        if not self._is_syncer:
            self._forget_learners()
        actions = self.settled()
        if not self._is_syncer:
            self._outer = None
        return actions

    def take_over(self, tensors: Sequence[Tensor]) -> None:
        super().take_over(tensors)
        self._forget_learners()

    def _forget_learners(self) -> None:
        for learners in self._learners:
            learners.clear()

    @property
    def _is_syncer(self) -> bool:
        return self.host(self.there) == self.setup.worker

    def _close(self) -> Sent:
        due = [number for number, each in self._rounds.items() if self._is_due(number, each)]
        waiting = {learner for each in self._rounds.values() for learner in each.publications}
        if self._rounds and not due and waiting.issuperset(set().union(*self._learners)):
            due = [next(iter(self._rounds))]  # All wait, for different fragments: no quorum would come.
        sent: Sent = []
        for number in due:
            publications = self._rounds.pop(number).publications
            sent += self._step(number, [publications[learner] for learner in sorted(publications)])
        return sent

    def _is_due(self, number: int, each: _Round) -> bool:
        learners = self._learners[number].union(each.publications)
        quorum = self.parameters.quorum or (self.setup.workers + 1) // 2
        if len(each.publications) < min(quorum, len(learners)):
            return False
        if each.end is None:
            carried = self.setup.links.carried([peer for peer in each.publications if peer in self.setup.peers])
            slowest = min(carried, default=0.0)
            answer = DENSE_ENTRY_BYTES * len(self._fragments[number]) / slowest if slowest else 0.0
            each.end = each.steps + self.parameters.margin * max(0.0, self.parameters.delay - each.steps - answer)
        return self._is_idle or each.steps >= each.end or len(each.publications) == len(learners)

    def _step(self, number: int, publications: list[Message]) -> Sent:
        """Nesterov's step of a fragment, and its result to each of these learners."""
        entries = self._fragments[number]
        start, momentum = outer = self._outer or (self.start.clone(), torch.zeros_like(self.start))
        bodies = [each.body for each in publications if isinstance(each.body, PseudoGradient)]
        samples = sum(body.batch_size for body in bodies)
        if self._is_syncer:
            self._outer = outer
        else:  # Another one is the syncer now, without this step in its state.
            self.drop(samples * len(entries) / len(self.start))
        weights = [body.batch_size / samples for body in bodies]
        moved = [decode(each.tensors, self.parameters.precision, len(entries)) for each in publications]
        change = merged(moved, weights, self._is_plain[entries] if self.parameters.radial else None)
        momentum[entries] = self.parameters.outer_momentum * momentum[entries] + change
        step = change + self.parameters.outer_momentum * momentum[entries]
        start[entries] -= self.parameters.outer_learning_rate * step
        result = start[entries]
        answers = [(each.sender, Answer(body.iteration)) for each, body in zip(publications, bodies, strict=True)]
        return [sent for sender, answer in answers for sent in self.deliver(sender, answer, result)]

    def _drop(self, number: int, further: int = 0) -> None:
        samples, self._samples[number] = self._samples[number], 0
        self.drop((samples + further) * len(self._fragments[number]) / len(self.start))

    def _number(self, iteration: int) -> int:
        """The fragment that is published in an iteration."""
        return ((iteration + 1) // self._interval - 1) % self.parameters.fragments

    def _publishes(self, number: int, iteration: int) -> bool:
        """Whether a learner that has all iterations from this one on before it will publish a fragment."""
        first = (number + 1) * self._interval
        rounds = max(0, -((first - iteration - 1) // self.parameters.period))
        return self.setup.iterations is None or first + rounds * self.parameters.period <= self.setup.iterations


def merged(moved: list[Tensor], weights: list[float], is_plain: Tensor | None) -> Tensor:
    """The weighted mean [m] of pseudo-gradients; but for plain entries, mean length times mean direction."""
    mean = sum((each * weight for each, weight in zip(moved, weights, strict=True)), torch.zeros_like(moved[0]))
    if is_plain is None:
        return mean
    radial = [each * ~is_plain for each in moved]
    lengths = [each.norm() for each in radial]
    length = sum((each * weight for each, weight in zip(lengths, weights, strict=True)), torch.tensor(0.0))
    parts = [each * (weight / own) for each, weight, own in zip(radial, weights, lengths, strict=True) if own > 0]
    direction = sum(parts, torch.zeros_like(mean))
    norm = direction.norm()
    return torch.where(is_plain, mean, direction * (length / norm) if norm > 0 else direction)


SYSTEMS["decoupled_diloco"] = Composition(
    "Decoupled DiLoCo, 2026", exchange={"kind": "decoupled_diloco"}, synchronization={"kind": "asynchronous"}
)
