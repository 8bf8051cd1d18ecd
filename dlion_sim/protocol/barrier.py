"""What holds the end of an iteration up."""

from __future__ import annotations

from dlion_sim.protocol.choices import Choices, Peer, Setup
from dlion_sim.protocol.events import Event, MessageArrived, MessageSent, PeerLost
from dlion_sim.protocol.membership import Membership
from dlion_sim.protocol.messages import Contribution

QUEUE, LOST = "queue", "lost"
"""What a wait was for, where that was no message."""
_UPDATE = Contribution.kind


class Barrier:
    """Says whether an iteration may end, as synchronization and exchange let it."""

    def __init__(self, setup: Setup, choices: Choices, members: Membership) -> None:
        self._setup = setup
        self._exchange = choices.exchange
        self._synchronization = choices.synchronization
        self._members = members
        self._awaited: list[Peer] = []
        """Those that synchronization waited for when it was last asked of all, less some that have been heard of."""

    def changed(self) -> None:
        """Other peers are there than before."""
        self._awaited = []

    def holds_up(self, iteration: int) -> bool:
        """Whether `iteration` may not end yet."""
        synchronization = self._synchronization
        if not (synchronization.ready(iteration) and self._exchange.ready(iteration)):
            return True

        def waits(peer: Peer) -> bool:
            return synchronization.waits_for(peer, iteration)

        # To know of one more than may be spared suffices: it is not asked of all n peers whenever one is heard of.
        needed = synchronization.spared + 1
        while len(self._awaited) >= needed and not all(map(waits, self._awaited[-needed:])):
            self._awaited[-needed:] = filter(waits, self._awaited[-needed:])
        if len(self._awaited) < needed:
            self._awaited = list(filter(waits, self._members.peers.values()))
        return len(self._awaited) >= needed

    def furthest_behind(self, iteration: int) -> tuple[int | None, str | None]:
        """Of the peers that the end of `iteration` waits for, the one furthest behind, and for what."""
        synchronization, peers = self._synchronization, self._members.peers
        awaited = [number for number, peer in peers.items() if synchronization.waits_for(peer, iteration)]
        if len(awaited) <= synchronization.spared:
            return None, None  # It is something else that the wait is for.
        if synchronization.waits_for_peers:
            return min(awaited, key=lambda number: peers[number].newest), _UPDATE
        return max(awaited, key=self._setup.links.messages), QUEUE


def cause(event: Event) -> tuple[int | None, str | None]:
    """Which peer has ended a wait, and by what."""
    match event:
        case MessageArrived(message):
            return message.sender, message.body.kind
        case MessageSent(peer=peer):
            return peer, QUEUE
        case PeerLost(peer=peer):
            return peer, LOST
        case _:
            return None, None
