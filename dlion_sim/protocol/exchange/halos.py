"""Hierarchical asynchronous local SGD (HALoS, ICML'25)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar

from pydantic import Field
from torch import Tensor

from dlion_sim.learning.replica import Replica
from dlion_sim.protocol.choices import ChoiceParameters, Setup
from dlion_sim.protocol.events import Action, Send
from dlion_sim.protocol.exchange.async_local_sgd import DelayedNesterov, PseudoGradient
from dlion_sim.protocol.exchange.hosted import Answer, HostedExchange, Sent
from dlion_sim.protocol.messages import MalformedMessageError, Message
from dlion_sim.protocol.quantization import PseudoGradientPrecision, check_encoded, encode
from dlion_sim.protocol.registry import SYSTEMS, Composition, register
from dlion_sim.protocol.updates import Incoming, LocalGradient, Outgoing


class RegionPseudoGradient(PseudoGradient, frozen=True, array_like=True):
    """By how much a region's server has moved since it last sent or merged, for the global server."""

    wire_kind: ClassVar[str] = "region_pseudo_gradient"


class GlobalAnswer(Answer, frozen=True, array_like=True):
    """The global server's parameters, for a region's."""

    wire_kind: ClassVar[str] = "global_answer"


@register("exchange", "halos")
class HalosExchange(HostedExchange):
    """Workers send pseudo-gradients to a server in their `region`, or else cloud, and it to a global one.

    Both kinds of servers apply each as it comes, with delayed Nesterov momentum, and answer it at once. After
    `region_updates` updates, a region's server sends by how much it has moved; when the answer G comes, theta <-
    (1 - merge) theta + merge * G. What it applies in between never reaches the global server, and is counted.

    A region's server is held by its lowest-numbered worker that is there, the global one by that of all.
    """

    receives = (PseudoGradient, RegionPseudoGradient, Answer, GlobalAnswer)

    class Parameters(ChoiceParameters):
        """Defaults: those of the public code (utnslab/halos), whose rates are for undivided updates."""

        period: int = Field(8, ge=1, description="H: local steps between pseudo-gradients.")
        region_updates: int = Field(32, ge=1, description="K: a region's updates between its pseudo-gradients.")
        merge: float = Field(
            0.25,
            ge=0,
            le=1,
            description="Weight of the global parameters in a region's. Updates applied since sending never reach "
            "the global one: `dropped_samples` in summaries.",
        )
        region_learning_rate: float = Field(0.2, gt=0, description="Of a region's server, for an undivided update.")
        region_momentum: float = Field(0.9, ge=0, lt=1, description="Nesterov's, of a region's server.")
        region_momentum_every: int = Field(16, ge=1, description="N: updates between changes of that momentum.")
        global_learning_rate: float = Field(0.15, gt=0, description="Of the global server, for an undivided update.")
        global_momentum: float = Field(0.5, ge=0, lt=1, description="Nesterov's, of the global server.")
        global_momentum_every: int = Field(2, ge=1, description="N: updates between changes of that momentum.")
        precision: PseudoGradientPrecision = "fp32"

    parameters: Parameters

    def __init__(self, parameters: Parameters, setup: Setup) -> None:
        super().__init__(parameters, setup)
        regions = setup.regions or ("",) * setup.workers
        self._region = [worker for worker, region in enumerate(regions) if region == regions[setup.worker]]
        self._steps, self._samples, self._seconds = 0, 0, 0.0
        """Of the present period."""
        self._awaited: int | None = None
        """The host whose answer is missing."""
        self._answer: Tensor | None = None
        self._region_server: _Server | None = None
        is_global_host = self.host(self.there) == setup.worker
        self._global_server = self._server(is_global=True) if is_global_host else None

    def outgoing(self, own: LocalGradient) -> Outgoing:
        replica = self.setup.replica
        replica.step(own.gradient)
        self._steps += 1
        self._samples += own.batch_size
        self._seconds += own.seconds
        if self._steps < self.parameters.period:
            return Outgoing(None, [])
        self._awaited = self.host(self._region)
        body = PseudoGradient(own.iteration, self._samples, 0, self._seconds / self._steps)
        tensors = encode(self.start - replica.parameters, self.parameters.precision)
        return Outgoing(None, self.deliver(self._awaited, body, *tensors))

    def ready(self, iteration: int) -> bool:
        return self._awaited is None

    def apply(self, incoming: Incoming) -> int:
        if self._steps < self.parameters.period:
            return 0
        answer, self._answer = self._answer, None
        if answer is not None:
            self.setup.replica.write(0, answer)
        self.start.copy_(self.setup.replica.parameters)
        self._steps, self._samples, self._seconds = 0, 0, 0.0
        return int(answer is not None)

    def check(self, message: Message) -> None:
        body, size = message.body, len(self.start)
        if isinstance(body, PseudoGradient):
            check_encoded(message.tensors, self.parameters.precision, size)
            if type(body) is PseudoGradient and message.sender not in self._region:
                raise MalformedMessageError("a pseudo-gradient of a worker of another region")
        elif len(message.tensors[0]) != size:
            raise MalformedMessageError("an answer without all parameters")
        elif type(body) is Answer and message.sender != self._awaited:
            raise MalformedMessageError("an answer to no pseudo-gradient")

    def take(self, message: Message) -> Sent:
        """A server that this worker does not hold any more answers once, to a sender that did not know that yet."""
        match message.body:
            case RegionPseudoGradient(iteration, samples):
                server = self._global_server or self._server(is_global=True)
                if self.host(self.there) == self.setup.worker:
                    self._global_server = server
                else:
                    self.drop(samples)
                return self.deliver(message.sender, GlobalAnswer(iteration), server.step(message, self.there))
            case PseudoGradient(iteration, samples):
                server = self._region_server or self._server(is_global=False)
                sent = self.deliver(message.sender, Answer(iteration), server.step(message, self.there))
                if self.host(self._region) != self.setup.worker:
                    self.drop(samples)
                    return sent
                self._region_server = server
                server.samples += samples
                server.updates += 1
                is_due = server.asked is None and server.updates >= self.parameters.region_updates
                return [*sent, *(self._send(server) if is_due else [])]
            case GlobalAnswer():
                if (region := self._region_server) and region.asked == message.sender:
                    self.drop(region.samples)
                    region.merge(message.tensors[0], self.parameters.merge)
            case _:
                self._awaited, self._answer = None, message.tensors[0]
        return []

    def lost(self, peer: int) -> None:
        """Without the answer of a server that is lost, its part of the pseudo-gradient is dropped."""
        super().lost(peer)
        if self._awaited == peer:
            self._awaited = None
            self.drop(self._samples)
        if (region := self._region_server) and region.asked == peer:
            region.asked = None
            self.drop(region.sent)

    def joined(self, peer: int, iteration: int) -> list[Action]:
        """A new host starts its own server; this one's last updates go to the global one."""
        super().joined(peer, iteration)
        if self.host(self.there) != self.setup.worker:
            self._global_server = None
        region, actions = self._region_server, list[Action]()
        if region and self.host(self._region) != self.setup.worker:
            if region.asked is not None:
                self.drop(region.samples)
            elif region.updates:
                actions = [Send(*each) for each in self._send(region)]
            self._region_server = None
        return actions

    def take_over(self, tensors: Sequence[Tensor]) -> None:
        """Servers that it will hold begin with the sponsor's `start`, not with the initial parameters."""
        super().take_over(tensors)
        self._region_server = self._global_server = None

    def _send(self, region: _Server) -> Sent:
        assert isinstance(region.last, PseudoGradient)
        pseudo_gradient = region.begin(self.host(self.there))
        body = RegionPseudoGradient(region.last.iteration, region.sent, 0, region.last.step)
        return self.deliver(self.host(self.there), body, *encode(pseudo_gradient, self.parameters.precision))

    def _server(self, *, is_global: bool) -> _Server:
        given = self.parameters
        if is_global:
            rate, momentum, every = given.global_learning_rate, given.global_momentum, given.global_momentum_every
        else:
            rate, momentum, every = given.region_learning_rate, given.region_momentum, given.region_momentum_every
        replica = self.setup.replica.twin()
        replica.write(0, self.start)
        rule = DelayedNesterov(replica, rate=rate * every, momentum=momentum, every=every, precision=given.precision)
        return _Server(replica, rule)


class _Server:
    """A region's server or the global one."""

    def __init__(self, replica: Replica, rule: DelayedNesterov) -> None:
        self._replica, self._rule = replica, rule
        self._snapshot = replica.snapshot()
        """Where the pseudo-gradient to send began."""
        self.last: PseudoGradient | None = None
        """The pseudo-gradient that it applied last."""
        self.updates = self.samples = 0
        """Updates since it sent or merged, and samples of theirs."""
        self.asked: int | None = None
        """The host of the global server, while its answer is missing."""
        self.sent = 0
        """The samples of what was sent to it."""

    def step(self, message: Message, members: Collection[int]) -> Tensor:
        assert isinstance(message.body, PseudoGradient)
        self.last = message.body
        self._rule.step([message], members)
        return self._replica.snapshot()

    def begin(self, host: int) -> Tensor:
        """The pseudo-gradient [P] to send to the global server."""
        pseudo_gradient = self._snapshot - self._replica.parameters
        self.asked, self.sent, self._snapshot = host, self.samples, self._replica.snapshot()
        self.updates = self.samples = 0
        return pseudo_gradient

    def merge(self, answer: Tensor, share: float) -> None:
        self._replica.merge(answer, share)
        self._snapshot = self._replica.snapshot()
        self.asked, self.updates, self.samples = None, 0, 0


SYSTEMS["halos"] = Composition(
    "Hierarchical asynchronous local SGD, ICML'25",
    exchange={"kind": "halos"},
    synchronization={"kind": "asynchronous"},
)
