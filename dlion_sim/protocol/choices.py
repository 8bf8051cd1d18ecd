"""The interfaces of the four choices that make a system.

Each worker has an instance of each. It is made from its validated `Parameters` and the worker's `Setup`, keeps its
state in plain attributes, and does no I/O: it returns actions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
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
    """The parameters of a choice; a scenario may set its fields."""


OnLoss = Literal["go_on", "wait", "abort"]
"""What a worker or server does about a lost peer that it waits for: continue, wait for its return, or abort."""
Sponsor = Literal["nearest", "least_loaded", "best"]
"""The member that a joining worker gets state from: the first to answer, of the shortest queue, or of least loss."""


@dataclass(frozen=True)
class Setup:
    """The data that a worker is made from."""

    worker: int
    """Its number, from 0."""
    workers: int
    """The number of workers."""
    replica: Replica
    """The worker's parameters; only the exchange and merges write them."""
    mixing: Mapping[int, float]
    """Each peer, with the weight of its parameters where parameters are mixed; the own weight is the rest to 1."""
    batch_size: int
    """The local batch size at the start."""
    training_samples: int
    """The number in all shards."""
    shard_samples: int
    """The number in this worker's shard, which is the largest possible batch."""
    regions: tuple[str, ...] = ()
    """Each worker's region: its cloud's, or the cloud itself; empty: all are in one."""
    side: int | None = None
    """The worker's set of a bipartite graph, 0 or 1, if the exchange needs it."""
    iterations: int | None = None
    """The number after which it stops."""
    seed: int = 0
    """That of the run, for random streams."""
    sums: WeightedSums = field(default_factory=WeightedSums)
    """Computes updates; workers of one process may share it."""
    absent: frozenset[int] = frozenset()
    """Neighbours that are absent at its start. PeerFound follows if one connects. A joining worker waits for PeerFound
    or PeerLost of all others."""
    on_loss: OnLoss = "abort"
    """What it does if synchronization waits for a lost peer."""
    sponsor: Sponsor = "nearest"
    """The member that it gets state from if it joins."""
    incarnation: int = 0
    """How often the worker's process has restarted; each incarnation has its own random streams."""
    links: LinkMonitor = field(init=False)
    """Measurements of links. The worker writes them, its choices read them."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "links", LinkMonitor(self.mixing))

    @property
    def peers(self) -> tuple[int, ...]:
        """The connected peers, which everything is sent to."""
        return self.links.peers

    def stream(self, purpose: str) -> np.random.Generator:
        """This worker's random stream for a purpose; each incarnation has its own."""
        return stream(self.seed, purpose, self.worker, *([self.incarnation] if self.incarnation else []))


class Choice:
    """The common part of the four interfaces."""

    class Parameters(ChoiceParameters):
        """No parameters."""

    def __init__(self, parameters: Any, setup: Setup) -> None:
        self.parameters = parameters
        self.setup = setup

    needs_everyone: ClassVar[bool] = False
    """Whether it needs all workers to be each other's peers."""
    receives: tuple[type[Body], ...] = ()
    """The kinds of messages that `received` takes; only one choice of a system may take a kind. An instance may take
    fewer than its class."""

    def received(self, message: Message) -> list[Action]:
        """A peer's message of a kind in `receives` has arrived.

        Raises MalformedMessageError, with nothing changed, for one that a correct peer does not send.
        """
        raise TypeError(f"{type(self).__name__} receives no {type(message.body).__name__}")

    def lost(self, peer: int) -> str | None:
        """A peer is lost, and no longer among `setup.peers`. Returns the reason if the worker cannot continue.

        It is called before the start for absent neighbours, and for all neighbours of a joining worker.
        """
        return None

    def left(self, peer: int) -> str | None:
        """A peer has left gracefully, after all its contributions have arrived; or it is absent when the run begins.
        As `lost`, which it calls by default."""
        return self.lost(peer)

    def joined(self, peer: int, iteration: int) -> list[Action]:
        """A peer joins: it is a member from `iteration` on. Returns actions, such as messages to it.

        A choice with state by peer has to define both `lost` and `joined`: this one aborts if there is only `lost`.
        """
        if type(self).lost is Choice.lost:
            return []
        return [Abort(f"{type(self).__name__} has a method 'lost' for peers, but none 'joined' for those that join")]

    common: Sequence[Tensor] = ()
    """Tensors that a joining worker needs, float32 [m] each: the same objects for ever, written in place."""

    def state(self) -> Sequence[Tensor]:
        """The state of this choice for a joining worker: float32 [m] each, with at most as many entries as the model.

        They are not written after this call. Their number and lengths are the same on all workers; an empty one may
        become as long as the model. By default copies of `common`.
        """
        return [tensor.clone() for tensor in self.common]

    def take_over(self, tensors: Sequence[Tensor]) -> None:
        """Load the `state` of another worker's choice."""
        for own, other in zip(self.common, tensors, strict=True):
            own.copy_(other)


class Batching(Choice, ABC):
    """The batch sizes of a worker, and the weights of gradients in an update."""

    def profile(self) -> tuple[int, ...]:
        """Batch sizes to time before training."""
        return ()

    def measured(self, measurements: Sequence[tuple[int, float]]) -> list[Action]:
        """(batch size, seconds) of computations: those of the profile together, then of each iteration."""
        return []

    @abstractmethod
    def batch_size(self, iteration: int) -> int:
        """The local batch size of `iteration`."""

    @abstractmethod
    def global_batch_size(self, iteration: int) -> int:
        """The samples of all workers in `iteration`, as far as this worker knows."""

    @abstractmethod
    def weight(self, gradient: Contribution, own_batch_size: int) -> float:
        """The weight of a peer's (or the own) gradient in the mean over all workers."""


class Exchange(Choice, ABC):
    """What a worker sends of its gradient or parameters, and how contributions are applied.

    Once an iteration, in this order: `began` and `outgoing` return messages, and `apply` writes the replica. `arrived`
    checks contributions; `covers` and `ready` say whether an iteration must wait.
    """

    receives: tuple[type[Body], ...] = (Contribution,)
    """Contributions are handed to `arrived` and, when due, to `apply`; other kinds to `received`."""

    needs_servers: ClassVar[bool] = False
    """Whether its peers are parameter servers."""
    evaluates_server: ClassVar[bool] = False
    """Whether its server's parameters are evaluated, in place of the workers'; there is one server then."""
    needs_sides: ClassVar[bool] = False
    """Whether it needs a bipartite graph, and `Setup.side`."""
    needs_oracle: bool = False
    """Whether `setup.links` needs true bandwidths, which only a simulation knows."""
    sends_every_iteration: ClassVar[bool] = True
    """Whether peers can wait for its messages: it sends one to every peer in every iteration, or `senders` and `covers`
    tell which not."""

    joins_with_state: ClassVar[bool] = False
    """Whether a joining worker announces its first iteration once it has the state: members may be past one that it
    announced before, as not all of them wait for its contribution of each iteration until that has ended."""
    catches_up: ClassVar[bool] = False
    """Whether a worker that has skipped iterations first applies its peers' contributions to them."""

    @classmethod
    def needs_lockstep(cls, parameters: Any) -> str | None:
        """The setting, if any, that needs all workers to apply the same contributions in each iteration: synchronous
        training with all workers each other's peers."""
        return None

    @property
    def rests(self) -> bool:
        """Whether the worker does nothing at present, until a message to `received` ends that."""
        return False

    def began(self, iteration: int, batch_size: int) -> Sequence[tuple[int, Message]]:
        """The messages to send when an iteration begins, while its gradient is computed."""
        return []

    @abstractmethod
    def outgoing(self, own: LocalGradient) -> Outgoing:
        """The messages for a new local gradient, and the own update to apply. The replica may be written."""

    def arrived(self, update: Update) -> None:
        """A peer's contribution has arrived; `apply` gets it when it is due.

        Raises MalformedMessageError, with nothing changed, if `apply` could not use it.
        """

    def covers(self, tag: int) -> int:
        """The last iteration for which a contribution of iteration `tag` is the newest one; -1 stands for none yet.

        Between the contributions of an exchange with a period, there is nothing to wait for.
        """
        return tag

    def senders(self, tag: int) -> Collection[int] | None:
        """The workers that send this one a contribution of iteration `tag`, of which members are waited for; None: all
        peers."""
        return None

    def ready(self, iteration: int) -> bool:
        """Whether the exchange lets `iteration` end: some are barriers themselves."""
        return True

    def apply(self, incoming: Incoming) -> int:
        """End an iteration: write the replica, and return how many contributions of peers were applied.

        It is called for skipped iterations only if the exchange `catches_up`.

        By default one step with the weighted mean, sum of factor_j * g_j, in which missing entries count as 0. Workers
        that received the same contributions get the same result, to the bit.
        """
        if terms := [(update, incoming.factor(update.body)) for update in incoming.updates]:
            replica, sums = self.setup.replica, self.setup.sums
            if replica.plain and (add := sums.adding(terms, replica.layout.size)):
                replica.step_by(add)
            else:
                replica.step(sums.of(terms, replica.layout.size))
        return len(incoming.received)

    def settled(self) -> list[Action]:
        """What follows at once from the loss of a peer, which it has been told of."""
        return []

    def dropped(self) -> float | None:
        """The samples, since the last call, of local work that no other worker will get; None: it does not tell."""
        return None

    def whole(self, own: LocalGradient, n_percent: float | None = None) -> Update:
        return self._update(Contribution(own.iteration, own.batch_size, n_percent), own.gradient)

    def entries(self, own: LocalGradient, indices: Tensor, values: Tensor, n_percent: float | None = None) -> Update:
        """Some entries: indices [m] (int32, increasing), values [m]."""
        return self._update(Contribution(own.iteration, own.batch_size, n_percent), indices, values)

    def stretch(self, own: LocalGradient, offset: int, values: Tensor) -> Update:
        """The entries from `offset` on: values [m]."""
        return self._update(Contribution(own.iteration, own.batch_size, offset=offset), values)

    def to_all(self, update: Update) -> Sequence[tuple[int, Message]]:
        return [(peer, update) for peer in self.setup.peers]

    def _update(self, body: Contribution, *tensors: Tensor) -> Update:
        return Update(self.setup.worker, body, tensors)


@dataclass(slots=True)
class Peer:
    """The progress of a peer, as a worker knows it."""

    number: int
    newest: int = -1
    """The last iteration for which nothing more of the peer is waited for; -1 for none."""
    received: int = -1
    """The last iteration of which a contribution has arrived, or is not expected; -1 for none."""
    since: int | None = 0
    """The first iteration of which its contribution counts; None: not known yet, and none counts."""


Due = Literal["now", "later", "never"]


class Synchronization(Choice, ABC):
    """When a worker's iteration may end, and which contributions are due then."""

    waits_for_peers: ClassVar[bool] = True
    """Whether it waits for messages of its peers' iterations."""

    @classmethod
    def lag(cls, parameters: Any) -> int | None:
        """Iterations that a peer may be behind; None: any number."""
        return None

    @property
    def spare_peers(self) -> int:
        """How many of the peers that `waits_for` selects may be missing."""
        return 0

    @abstractmethod
    def waits_for(self, peer: Peer, iteration: int) -> bool:
        """Whether the end of `iteration` waits for this peer."""

    def ready(self, iteration: int) -> bool:
        """Whether `iteration` may end, `waits_for` apart."""
        return True

    @abstractmethod
    def due(self, tag: int, iteration: int) -> Due:
        """Whether a peer's gradient of iteration `tag` is applied at the end of `iteration`, later, or never."""

    def skipped(self, iteration: int) -> int:
        """How many iterations to skip after `iteration`, which has ended."""
        return 0

    def entered(self, iteration: int) -> list[Action]:
        """The worker begins `iteration`; for a joining worker it may be called repeatedly with the same one."""
        return []


class KnowledgeTransfer(Choice, ABC):
    """Which workers' weights are merged, and when."""

    @abstractmethod
    def stepped(self, iterations: int, loss: float) -> list[Action]:
        """The worker has ended its `iterations`-th iteration, with this training loss."""

    @abstractmethod
    def merge(self) -> int:
        """Merge the weights that have arrived since the last call into the replica; returns how many."""


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
        return {kind: choice for choice in self.all for kind in choice.receives}
