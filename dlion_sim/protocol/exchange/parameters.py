"""Neighbours mix their parameters (D-PSGD: Lian et al., NeurIPS'17; Hop: Luo et al., ASPLOS'19)."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from dlion_sim.protocol.choices import ChoiceParameters, Exchange, Setup
from dlion_sim.protocol.events import Action
from dlion_sim.protocol.messages import Message, Mixed
from dlion_sim.protocol.registry import SYSTEMS, Composition, register
from dlion_sim.protocol.updates import Incoming, LocalGradient, Outgoing, Update
from dlion_sim.scenario.system import Ring


@register("exchange", "parameters")
class ParameterExchange(Exchange):
    """x_i <- sum_j W_ij x_j - learning rate * g_i, over a worker and its peers on any topology.

    Parameters go out when an iteration begins, while its gradient is computed. W is doubly stochastic (see
    `mixing_weights`). Of a peer the newest parameters count that are at most `staleness` iterations old, the more the
    newer they are: W_ij * (tag - (iteration - staleness) + 1). Where some are missing, the weights of the others are
    scaled up.
    """

    class Parameters(ChoiceParameters):
        """The staleness of mixed parameters."""

        staleness: int = Field(
            0,
            ge=0,
            description="Maximum staleness of a peer's parameters, in iterations; older ones are ignored.",
        )

    parameters: Parameters
    catches_up = True
    receives = (Mixed,)

    def __init__(self, parameters: Parameters, setup: Setup) -> None:
        super().__init__(parameters, setup)
        self._latest: dict[int, Update] = {}

    def arrived(self, update: Update) -> None:
        update.check_whole(self.setup.replica.layout.size)

    def lost(self, peer: int) -> None:
        """Its weight goes to the own parameters."""
        self._latest.pop(peer, None)

    def joined(self, peer: int, iteration: int) -> list[Action]:
        self._latest.pop(peer, None)
        return []

    def began(self, iteration: int, batch_size: int) -> Sequence[tuple[int, Message]]:
        weights = self.setup.replica.snapshot()
        return self.to_all(Update(self.setup.worker, Mixed(iteration, batch_size), (weights,)))

    def outgoing(self, own: LocalGradient) -> Outgoing:
        """Nothing more to send; the own gradient stays here."""
        return Outgoing(self.whole(own), [])

    def apply(self, incoming: Incoming) -> int:
        """Mix, then take the own gradient's step.

        After skipped iterations, it mixes with the peers' newest parameters before the next gradient.
        """
        mixed = self._mix(incoming)
        if incoming.own:
            self.setup.replica.step(incoming.own.tensors[0])
        return mixed

    def _mix(self, incoming: Incoming) -> int:
        """Mix with the received parameters of the iteration; returns the number of peers."""
        for update in sorted(incoming.received, key=lambda update: update.body.iteration):
            self._latest[update.sender] = update
        oldest = incoming.iteration - self.parameters.staleness
        here = sum(self.setup.mixing[peer] for peer in incoming.peers)
        own_weight = (1 - here) * (self.parameters.staleness + 1)
        peers = {
            peer: self.setup.mixing[peer] * (self._latest[peer].body.iteration - oldest + 1)
            for peer in incoming.peers
            if peer in self._latest and self._latest[peer].body.iteration >= oldest
        }
        total = own_weight + sum(peers.values())
        self.setup.replica.mix(
            own_weight / total, ((self._latest[peer].tensors[0], weight / total) for peer, weight in peers.items())
        )
        # What is too old for the next iteration would only fill the memory.
        self._latest = {peer: update for peer, update in self._latest.items() if update.body.iteration > oldest}
        return len(peers)


SYSTEMS["dpsgd"] = Composition("Lian et al., NeurIPS'17", exchange={"kind": "parameters"}, topology=Ring())
