"""The barrier at the end of an iteration: whether a worker waits, for which peer, and why."""

from __future__ import annotations

from itertools import islice

from dlion_sim.protocol.choices import Choices, Peer, Setup
from dlion_sim.protocol.events import Event, MessageArrived, MessageSent, PeerLost
from dlion_sim.protocol.membership import Membership
from dlion_sim.protocol.messages import Contribution

QUEUE, LOST = "queue", "lost"
"""Reasons of waits that no message ended."""
_UPDATE = Contribution.kind


class Barrier:
    """Decides whether an iteration may end, by the worker's synchronization and exchange."""

    def __init__(self, setup: Setup, choices: Choices, members: Membership) -> None:
        self._setup = setup
        self._exchange = choices.exchange
        self._synchronization = choices.synchronization
        self._members = members
        self._awaited: list[Peer] = []
        """Peers that synchronization waited for at the last full check, less some that have contributed since."""

    def changed(self) -> None:
        self._awaited = []

    def blocks(self, iteration: int) -> bool:
        synchronization = self._synchronization
        if not (synchronization.ready(iteration) and self._exchange.ready(iteration)):
            return True

        def waits(peer: Peer) -> bool:
            return synchronization.waits_for(peer, iteration)

        if (senders := self._senders(iteration)) is not None:
            waiting = filter(waits, senders)
            return next(islice(waiting, synchronization.spare_peers, None), None) is not None
        # One awaited peer more than the spare ones suffices: not all n peers are checked after each message.
        needed = synchronization.spare_peers + 1
        while len(self._awaited) >= needed and not all(map(waits, self._awaited[-needed:])):
            self._awaited[-needed:] = filter(waits, self._awaited[-needed:])
        if len(self._awaited) < needed:
            self._awaited = list(filter(waits, self._members.peers.values()))
        return len(self._awaited) >= needed

    def furthest_behind(self, iteration: int) -> tuple[int | None, str | None]:
        """Of the peers that `iteration` waits for, the one furthest behind, and the reason; None if it waits for
        others."""
        synchronization, peers = self._synchronization, self._members.peers
        senders = self._senders(iteration)
        candidates = peers.values() if senders is None else senders
        awaited = [peer.number for peer in candidates if synchronization.waits_for(peer, iteration)]
        if len(awaited) <= synchronization.spare_peers:
            return None, None  # The wait has another reason.
        if synchronization.waits_for_peers:
            return min(awaited, key=lambda number: peers[number].newest), _UPDATE
        return max(awaited, key=self._setup.links.messages), QUEUE

    def _senders(self, iteration: int) -> list[Peer] | None:
        """The members whose contributions the exchange expects by the end of `iteration`; None: all peers'."""
        lag = self._synchronization.lag(self._synchronization.parameters)
        senders = None if lag is None else self._exchange.senders(iteration - lag)
        peers = self._members.peers
        return None if senders is None else [peers[number] for number in senders if number in peers]


def cause(event: Event) -> tuple[int | None, str | None]:
    """The peer that ended a wait, and the reason."""
    match event:
        case MessageArrived(message):
            return message.sender, message.body.kind
        case MessageSent(peer=peer):
            return peer, QUEUE
        case PeerLost(peer=peer):
            return peer, LOST
        case _:
            return None, None
