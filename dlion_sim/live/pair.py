"""A node and a peer, as the node sees it: who the peer is by now, and the connections that there are with it. No I/O.

Both ends tell their standing with each connection, so that both know which connections belong together: those between
the same processes, of which neither has lost the other since. A node that was started again is another process, which
takes the former one's place for good.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from dlion_sim.live.connection import Connection
from dlion_sim.live.frames import PeerError
from dlion_sim.live.handshake import Standing
from dlion_sim.protocol.messages import Channel


@dataclass(frozen=True)
class Connections:
    """A node's connections with one peer: those that it sends on, and those that it receives from."""

    outgoing: dict[Channel, Connection] = field(default_factory=dict)
    incoming: dict[Channel, Connection] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """Whether there is one for each channel, in both directions."""
        return len(self.outgoing) == len(self.incoming) == len(Channel)

    def close(self) -> None:
        """Close them all."""
        for connection in (*self.outgoing.values(), *self.incoming.values()):
            connection.close()


@dataclass(eq=False)
class Pair:
    """What is known of `peer`, and the connections with it until the node's host has them."""

    peer: int
    mine: Standing
    theirs: Standing | None = None
    connections: Connections = field(default_factory=Connections)
    is_met: bool = False
    """Whether the host has the connections."""
    is_tried: bool = False
    """Whether the host knows what came of trying to reach it."""
    former: set[bytes] = field(default_factory=set)
    """Processes that others have taken the place of."""
    patience: float | None = None
    """For how many seconds an answer is waited for, if not for as long as a handshake may take."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """There may be something to connect."""
    trouble: str = "no answer"

    @property
    def unreached(self) -> Sequence[Channel]:
        """The channels on which the peer is still to be connected to."""
        return [] if self.is_met else [channel for channel in Channel if channel not in self.connections.outgoing]

    def hear(self, theirs: Standing, clock: float | None) -> bool:
        """Take in the peer's standing, by this node's `clock` of the run; whether what was before it is over.

        Raises PeerError for one that is none, with nothing changed.
        """
        known = self.theirs
        if known is not None and theirs.process == known.process:
            if theirs.session < known.session:
                raise PeerError(f"is of a session with node {self.peer} that is over")
            if theirs.session == known.session:
                return False
        elif theirs.process in self.former:
            raise PeerError(f"is a node {self.peer} whose place another one has taken")
        elif theirs.clock is None and theirs.joins and clock is None:
            raise PeerError(f"is node {self.peer}, which wants to join a run that has not begun")
        elif theirs.clock is None and not theirs.joins and (self.mine.joins or clock is not None):
            raise PeerError(f"is node {self.peer}, which wants to begin a run that is under way")
        elif known is not None:
            self.former.add(known.process)
        self.theirs = theirs
        return True

    def part(self) -> None:
        """The connections that the host has are over: others are to take their place."""
        if self.is_met:
            self.is_met = False
            self.mine = replace(self.mine, session=self.mine.session + 1)
            self.connections = Connections()
            self.changed.set()

    def let_go(self) -> None:
        """Close what connections there are, of which the host knows nothing."""
        self.connections.close()
        self.connections = Connections()
        self.changed.set()
