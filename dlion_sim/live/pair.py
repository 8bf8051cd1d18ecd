"""A node's view of a peer: its present process, and the connections with it. No I/O.

Both ends exchange their standing on each connection. Connections belong together if they are between the same
processes, of which neither has lost the other since. A restarted node is another process, which replaces the former one
for good.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from dlion_sim.live.connection import Address, Connection
from dlion_sim.live.frames import PeerError
from dlion_sim.live.handshake import Standing
from dlion_sim.protocol.messages import Channel


@dataclass(frozen=True)
class Connections:
    """A node's connections with one peer, for sending and for receiving."""

    outgoing: dict[Channel, Connection] = field(default_factory=dict)
    incoming: dict[Channel, Connection] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """Whether there is one for each channel, in both directions."""
        return len(self.outgoing) == len(self.incoming) == len(Channel)

    def close(self) -> None:
        for connection in (*self.outgoing.values(), *self.incoming.values()):
            connection.close()


@dataclass(eq=False)
class Pair:
    """The state of `peer`, and the connections with it until the host gets them."""

    peer: int
    mine: Standing
    theirs: Standing | None = None
    connections: Connections = field(default_factory=Connections)
    is_met: bool = False
    """Whether the host has the connections."""
    is_tried: bool = False
    """Whether the host knows the result of the first attempt to reach it."""
    former: set[bytes] = field(default_factory=set)
    """Processes that others have replaced."""
    patience: float | None = None
    """The seconds to wait for an answer, if shorter than those of a handshake."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when there may be channels to connect."""
    trouble: str = "no answer"
    is_refused: bool = False
    """Whether the peer has answered this node once without letting it in."""
    seeks: bool = False
    """Whether it looks for the run itself, so that it lets nobody in."""

    @property
    def unreached(self) -> Sequence[Channel]:
        """The channels without a connection to the peer."""
        return [] if self.is_met else [channel for channel in Channel if channel not in self.connections.outgoing]

    @property
    def is_one_way(self) -> bool:
        """Whether one of both nodes has connected, and the other has not."""
        return not self.connections.is_complete and bool(self.unreached) == bool(self.connections.incoming)

    def what_is_missing(self, me: int, addresses: Sequence[Address]) -> str:
        """The connections that are not there, as node `me` sees it, and why."""
        peer = f"node {self.peer} at {addresses[self.peer]}"
        if not self.unreached:
            return f"{peer} has not connected to node {me} at {addresses[me]}, which can connect to it"
        if self.is_one_way:
            return f"node {me} cannot connect to {peer} ({self.trouble}), which can connect to node {me}"
        return f"{peer} was not reached: {self.trouble}"

    def hear(self, theirs: Standing, clock: float | None) -> bool:
        """Accept the peer's standing, at this node's `clock` of the run; whether it ends the former session.

        Raises PeerError for an invalid one, without changes.
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
        """The host's connections are over, and are to be replaced."""
        if self.is_met:
            self.is_met = False
            self.mine = replace(self.mine, session=self.mine.session + 1)
            self.connections = Connections()
            self.changed.set()

    def let_go(self) -> None:
        """Close connections that the host does not have yet."""
        self.connections.close()
        self.connections = Connections()
        self.changed.set()
