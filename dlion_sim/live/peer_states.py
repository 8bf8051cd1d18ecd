"""Which participants of a run are ready, done or lost, as far as a node knows. No I/O."""

from __future__ import annotations

from collections.abc import Collection


class PeerStates:
    """The states that node `rank` knows. At its end it waits for the `workers` among its peers.

    Participants that are `absent` at the start count as lost until they are found. Nobody tells of the return of those
    `out_of_sight`.
    """

    def __init__(
        self,
        rank: int,
        participants: int,
        workers: Collection[int],
        *,
        absent: Collection[int] = (),
        out_of_sight: Collection[int] = (),
        serves: bool,
    ) -> None:
        self._rank = rank
        self._participants = participants
        self._workers = workers
        self._ready = set(absent)
        # A server has nothing to do for itself.
        self._done = {rank} if serves else set()
        self._lost = set(absent)
        self._returned: set[int] = set()
        self._out_of_sight = out_of_sight
        self.gone: dict[int, str] = {}
        """Why participants of the run were lost, in the order in which the node learned of it."""

    @property
    def missing(self) -> dict[int, str]:
        """Of those that are `gone`, all but those found again, or perhaps back out of sight."""
        back = self._returned.union(self._out_of_sight)
        return {rank: reason for rank, reason in self.gone.items() if rank not in back}

    @property
    def unready(self) -> list[int]:
        """Those not known to be ready."""
        return [rank for rank in range(self._participants) if rank not in self._ready]

    @property
    def settled(self) -> bool:
        """Whether this node and its peers have done their parts, or never will."""
        return self._rank in self._done and all(peer in self._done | self._lost for peer in self._workers)

    @property
    def away(self) -> Collection[int]:
        """The workers that were lost, have left or were not reached, and were not found since."""
        return [peer for peer in self._workers if peer in self._lost]

    def ready(self, rank: int) -> bool:
        """A participant is ready; whether that is news."""
        return self._new(rank, self._ready)

    def done(self, rank: int) -> bool:
        """A participant is done; whether that is news."""
        return self._new(rank, self._done)

    def is_done(self, rank: int) -> bool:
        return rank in self._done

    def lost(self, peer: int, reason: str) -> bool:
        """The connections with a peer have ended before it was done; whether that is news."""
        news = peer not in self._lost and peer not in self.missing
        if news:
            self.gone.pop(peer, None)  # It is the last one now.
        self._lost.add(peer)
        self._returned.discard(peer)
        self.gone[peer] = reason
        return news

    def left(self, peer: int) -> None:
        """The connections with a peer have ended after it was done, or there never were any."""
        self._lost.add(peer)

    def found(self, peer: int) -> None:
        """A peer is there that was lost, or absent at the start; it is not done."""
        self._lost.discard(peer)
        self._done.discard(peer)
        self._returned.add(peer)

    def missed(self, rank: int) -> bool:
        """Others report the loss of a participant; whether that is news."""
        if rank == self._rank or rank in self._done or rank in self.gone:
            return False
        self.gone[rank] = "so others say"
        return True

    @staticmethod
    def _new(rank: int, known: set[int]) -> bool:
        news = rank not in known
        known.add(rank)
        return news
