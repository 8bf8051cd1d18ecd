"""The four choices that make a system, as interfaces.

A choice is one object per worker. It is made from its validated `Parameters` and the worker's `Setup`, keeps its state
in plain attributes, and does no I/O: what it wants done it returns as actions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from torch import Tensor

from dlion_sim.learning.replica import Replica
from dlion_sim.protocol.events import Abort, Action
from dlion_sim.protocol.link_monitor import LinkMonitor
from dlion_sim.protocol.messages import Body, Contribution, Message
from dlion_sim.protocol.sums import WeightedSums
from dlion_sim.protocol.updates import Incoming, LocalGradient, Outgoing, Update
from dlion_sim.scenario.model import Model
from dlion_sim.streams import stream


class ChoiceParameters(Model):
    """The parameters of a choice; its fields are what a scenario may set."""


OnLoss = Literal["go_on", "wait", "abort"]
"""What a worker or server that waits for a peer does without it: go on, wait for its return, or give up."""
Sponsor = Literal["nearest", "least_loaded", "best"]
"""From whom a newcomer gets its state: who answers first, has least to send, or has the least loss."""


@dataclass(frozen=True)
class Setup:
    """What a worker knows of itself and the run before it starts."""

    worker: int
    """Its number, from 0."""
    workers: int
    """How many there are in all."""
    replica: Replica
    """The worker's parameters; only the exchange and merges write them."""
    mixing: Mapping[int, float]
    """Each peer, with the weight of its parameters where parameters are mixed; the own one's is what is left to 1."""
    batch_size: int
    """The local batch size to start with."""
    training_samples: int
    """In all shards together."""
    shard_samples: int
    """In this worker's shard: the largest batch that it can take."""
    side: int | None = None
    """Which of the two sets of a bipartite graph it is in, 0 or 1; told to an exchange that needs it."""
    iterations: int | None = None
    """Stop after so many."""
    seed: int = 0
    """The run's, for random streams."""
    sums: WeightedSums = field(default_factory=WeightedSums)
    """Forms updates; workers of one process may share it."""
    absent: frozenset[int] = frozenset()
    """Neighbours that are not there as it starts: it is told PeerFound if one comes. A worker that joins waits for all
    others, until it is told that they are found or lost."""
    on_loss: OnLoss = "abort"
    """What it does where synchronization waits for a peer that is lost."""
    sponsor: Sponsor = "nearest"
    """From whom it gets its state if it joins."""
    incarnation: int = 0
    """How often this worker's machine has begun anew, with streams of its own for what is drawn."""
    links: LinkMonitor = field(init=False)
    """What the worker knows of its peers and its links to them. It alone writes it; its choices read it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "links", LinkMonitor(self.mixing))

    @property
    def peers(self) -> tuple[int, ...]:
        """The workers that this one exchanges with: those that are there, so that everything is sent to them."""
        return self.links.peers

    def stream(self, purpose: str) -> np.random.Generator:
        """This worker's own random stream for that purpose, and another one after it has begun anew."""
        return stream(self.seed, purpose, self.worker, *([self.incarnation] if self.incarnation else []))


class Choice:
    """What the four have in common."""

    class Parameters(ChoiceParameters):
        """No parameters."""

    def __init__(self, parameters: Any, setup: Setup) -> None:
        self.parameters = parameters
        self.setup = setup

    needs_everyone: ClassVar[bool] = False
    """Whether it works only where all workers are each other's peers."""
    receives: tuple[type[Body], ...] = ()
    """The kinds of message that it takes, by `received`; of a system's choices, one at most takes a kind. An instance
    may take fewer than its class."""

    def received(self, message: Message) -> list[Action]:
        """A peer's message of a kind named in `receives` is here.

        Raises MalformedMessageError, with nothing changed, for one that no honest peer sends.
        """
        raise TypeError(f"{type(self).__name__} receives no {type(message.body).__name__}")

    def lost(self, peer: int) -> str | None:
        """A peer is lost, and no longer among `setup.peers`. Returns why nothing can go on without it, if so.

        Neighbours that are not there at the start are lost before it, all of them where a worker joins.
        """
        return None

    def left(self, peer: int) -> str | None:
        """A peer has left in good order, after all of its contributions have reached everyone; or it is not there when
        the run begins. Returns what `lost` does, and by default is the same."""
        return self.lost(peer)

    def joined(self, peer: int, iteration: int) -> list[Action]:
        """A peer that was lost, or never there, takes part from `iteration` on. Returns what to do, such as to tell it.

        A choice that keeps something for each peer has to say what a new one gets: here it gives up if there is a
        method `lost` only.
        """
        if type(self).lost is Choice.lost:
            return []
        return [Abort(f"{type(self).__name__} knows of lost peers, but has no method 'joined' for those that come")]

    def state(self) -> Sequence[Tensor]:
        """What a newcomer is to have of this choice: float32 [m] each, at most as many as the model has parameters.

        Nobody may write them any more. How many there are, and how long each is, is the same on all workers; one that
        is empty, as there is nothing yet, may become as long as the model.
        """
        return []

    def take_over(self, tensors: Sequence[Tensor]) -> None:
        """Be as another worker's choice was when it said that by `state`."""


class Batching(Choice, ABC):
    """How many samples a worker computes its next gradient from, and what a gradient weighs in an update."""

    def profile(self) -> tuple[int, ...]:
        """Batch sizes to time before training."""
        return ()

    def measured(self, measurements: Sequence[tuple[int, float]]) -> list[Action]:
        """(batch size, seconds) of computations done: the profile's all together, then each iteration's."""
        return []

    @abstractmethod
    def batch_size(self, iteration: int) -> int:
        """Local batch size of `iteration`."""

    @abstractmethod
    def global_batch_size(self, iteration: int) -> int:
        """Samples that all workers together use in `iteration`, as far as this worker knows."""

    @abstractmethod
    def weight(self, gradient: Contribution, own_batch_size: int) -> float:
        """The factor of a peer's (or the own) gradient in the mean over all workers."""


class Exchange(Choice, ABC):
    """What goes to whom of a worker's gradient or parameters, and what becomes of that which comes.

    What to send is said by `began` and `outgoing`, what becomes of it all by `apply`: each once an iteration, in this
    order. `arrived`, `covers` and `ready` say which contributions are taken, and whether an iteration must wait.
    """

    receives: tuple[type[Body], ...] = (Contribution,)
    """Contributions come by `arrived` and, once they are due, `apply`; other kinds by `received`, as for all choices.
    """

    needs_servers: ClassVar[bool] = False
    """Whether its peers are parameter servers."""
    needs_sides: ClassVar[bool] = False
    """Whether it needs a bipartite graph, and its worker's side of that."""
    needs_oracle: bool = False
    """Whether `setup.links` is to be told true bandwidths: only a simulation can."""
    tells_all: ClassVar[bool] = True
    """Whether every peer gets a message of every iteration, if an empty one, so that it can wait for that."""

    catches_up: ClassVar[bool] = False
    """Whether a worker that has left out iterations takes in what its peers came to meanwhile before it goes on."""

    @classmethod
    def needs_step(cls, parameters: Any) -> str | None:
        """Which of those parameters, if any, needs all workers to apply the same contributions in each iteration: they
        have to be synchronous, and all each other's peers."""
        return None

    def began(self, iteration: int, batch_size: int) -> Sequence[tuple[int, Message]]:
        """The messages to send when an iteration begins: what can go out while its gradient is computed."""
        return []

    @abstractmethod
    def outgoing(self, own: LocalGradient) -> Outgoing:
        """What to send of a new local gradient, and what of it to apply. The replica may be written."""

    def arrived(self, update: Update) -> None:
        """A peer's contribution is here, and will be handed to `apply` when it is due.

        Raises MalformedMessageError, with nothing changed, where `apply` could not take it.
        """

    def covers(self, tag: int) -> int:
        """The last iteration for which a contribution of iteration `tag` is the newest there is; for -1, none yet.

        Who contributes only every so many iterations must not be waited for in between.
        """
        return tag

    def ready(self, iteration: int) -> bool:
        """Whether `iteration` may end as far as the exchange is concerned: some are barriers themselves."""
        return True

    def apply(self, incoming: Incoming) -> int:
        """End an iteration: write the replica, and return how many contributions of peers have entered it.

        Iterations that were left out are ended only for an exchange that `catches_up`.

        Here one step with the weighted mean, sum of factor_j * g_j, in which entries that were not received count as 0.
        Workers which received the same end up with the same, to the bit.
        """
        own = [incoming.own] if incoming.own else []
        if terms := [(update, incoming.factor(update.body)) for update in (*own, *incoming.received)]:
            self.setup.replica.step(self.setup.sums.of(terms, self.setup.replica.layout.size))
        return len(incoming.received)

    def whole(self, own: LocalGradient, n_percent: float | None = None) -> Update:
        """All of a gradient."""
        return self._update(Contribution(own.iteration, own.batch_size, n_percent), own.gradient)

    def entries(self, own: LocalGradient, indices: Tensor, values: Tensor, n_percent: float | None = None) -> Update:
        """Some entries: indices [m] (int32, increasing), values [m]."""
        return self._update(Contribution(own.iteration, own.batch_size, n_percent), indices, values)

    def stretch(self, own: LocalGradient, offset: int, values: Tensor) -> Update:
        """The entries from `offset` on: values [m]."""
        return self._update(Contribution(own.iteration, own.batch_size, offset=offset), values)

    def to_all(self, update: Update) -> Sequence[tuple[int, Message]]:
        """One message to every peer."""
        return [(peer, update) for peer in self.setup.peers]

    def _update(self, body: Contribution, *tensors: Tensor) -> Update:
        return Update(self.setup.worker, body, tensors)


@dataclass(slots=True)
class Peer:
    """How a worker stands with a peer."""

    number: int
    newest: int = -1
    """The last iteration for which the peer's contribution is here; -1 for none."""
    since: int | None = 0
    """The first iteration of which its contribution counts; None: none does, until it has said from when on."""


Due = Literal["now", "later", "never"]


class Synchronization(Choice, ABC):
    """When a worker may go on."""

    waits_for_peers: ClassVar[bool] = True
    """Whether it waits for messages of its peers' iterations."""

    @classmethod
    def lag(cls, parameters: Any) -> int | None:
        """Iterations that a peer may be behind, with those parameters; None: any number."""
        return None

    @property
    def spared(self) -> int:
        """How many of the peers that `waits_for` names need not be waited for."""
        return 0

    @abstractmethod
    def waits_for(self, peer: Peer, iteration: int) -> bool:
        """Whether the end of `iteration` waits for something of this peer, as it stands."""

    def ready(self, iteration: int) -> bool:
        """Whether `iteration` may end as far as anything but `waits_for` is concerned."""
        return True

    @abstractmethod
    def due(self, tag: int, iteration: int) -> Due:
        """When a peer's gradient of iteration `tag` is applied, seen from the end of `iteration`."""

    def skipped(self, iteration: int) -> int:
        """How many iterations to leave out after `iteration`, which has ended."""
        return 0

    def entered(self, iteration: int) -> list[Action]:
        """The worker begins `iteration`; one that joins may be told of the same one more than once."""
        return []


@dataclass(frozen=True, slots=True)
class Merge:
    """Weights [P] to merge: w <- w - share * (w - weights)."""

    weights: Tensor
    share: float


class KnowledgeTransfer(Choice, ABC):
    """Whose weights to merge, and when."""

    @abstractmethod
    def stepped(self, iterations: int, loss: float) -> list[Action]:
        """The worker has ended its `iterations`-th iteration, with this training loss."""

    @abstractmethod
    def merges(self) -> list[Merge]:
        """What has arrived to be merged since the last call."""


@dataclass(frozen=True)
class Choices:
    """A worker's four choices."""

    batching: Batching
    exchange: Exchange
    synchronization: Synchronization
    knowledge_transfer: KnowledgeTransfer

    @property
    def all(self) -> tuple[Choice, ...]:
        return self.batching, self.exchange, self.synchronization, self.knowledge_transfer

    def receivers(self) -> dict[type[Body], Choice]:
        """Which of them each kind of message is for."""
        return {kind: choice for choice in self.all for kind in choice.receives}
