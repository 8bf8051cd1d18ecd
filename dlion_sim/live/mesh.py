"""A node's links: a session with each peer that is connected."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator, Mapping
from contextlib import suppress

from dlion_sim.assembly import Transfer
from dlion_sim.live.bounded_loss import BoundedLoss
from dlion_sim.live.frames import Kind, Payload
from dlion_sim.live.pair import Connections
from dlion_sim.live.session import RANK, Hub, Session, Terms
from dlion_sim.protocol.messages import Channel, Message

_FAREWELL_SECONDS = 2.0
"""Within which queued control frames are sent at the end."""
_SIGNS_OF_LIFE = 20
"""Per time of silence after which a peer is lost; the accuracy of failure detection."""
_ENDED_SECONDS = 1.0
"""After which the tasks of a closed session are over."""
_ANEW = "was connected with anew"


class Mesh:
    """A node's links to and from each peer that is connected.

    Messages from peers in `delays` are handed over so many seconds after their arrival. With `datagrams`, messages that
    may lose a part are sent in these.
    """

    def __init__(
        self,
        terms: Terms,
        *,
        delays: Mapping[int, float],
        tasks: asyncio.TaskGroup,
        hub: Hub,
        datagrams: BoundedLoss | None = None,
    ) -> None:
        self._terms = terms
        self._delays = delays
        self._tasks = tasks
        self._hub = hub
        self._datagrams = datagrams
        self._sessions: dict[int, Session] = {}
        """The latest one with each peer."""
        if datagrams:
            datagrams.begin()
        self._staying_alive = tasks.create_task(self._stay_alive())
        self._last: tuple[Message, Payload] | None = None

    def connect(self, peer: int, connections: Connections) -> None:
        """Use these connections with a peer from now on, instead of any former ones."""
        if former := self._sessions.get(peer):
            former.drop(_ANEW)
            former.close()
            # An ended session is a cycle, with what it was sending and receiving; Python may find it minutes later.
            asyncio.get_running_loop().call_later(_ENDED_SECONDS, gc.collect)
        self._sessions[peer] = Session(
            peer, connections, self._terms, self._delays.get(peer, 0.0), self._hub, self._tasks, self._datagrams
        )
        self._sessions[peer].send(Channel.CONTROL, Kind.ALIVE, Payload())

    def superseded(self, peer: int) -> None:
        """A peer connects anew: its present session is lost."""
        self._sessions[peer].drop(_ANEW)

    def send(self, peer: int, message: Message) -> None:
        # A message to many peers is sent to one after another.
        if self._last is None or self._last[0] is not message:
            self._last = message, Payload(message.buffers)
        self._sessions[peer].send(message.body.channel, Kind.MESSAGE, self._last[1], message)

    def tell(self, kind: Kind, rank: int | None = None) -> None:
        """Tell every peer some news."""
        payload = Payload() if rank is None else Payload((RANK.pack(rank),))
        for session in self._sessions.values():
            session.send(Channel.CONTROL, kind, payload)

    def under_way(self) -> Iterator[tuple[Transfer, float]]:
        """Every message that is being sent, and how many of its bytes have arrived."""
        for session in self._sessions.values():
            yield from session.under_way()

    def acknowledgements_a_frame(self, peer: int) -> float:
        """How many have come from a peer for each full frame of data so far."""
        return self._sessions[peer].acknowledgements_a_frame()

    async def close(self) -> None:
        """End all connections, once control frames have left."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_FAREWELL_SECONDS):
                await asyncio.gather(*(session.flush() for session in self._sessions.values()))
        if self._datagrams:
            self._datagrams.close()
        self._staying_alive.cancel()
        for session in self._sessions.values():
            session.close()

    async def _stay_alive(self) -> None:
        while True:
            self.tell(Kind.ALIVE)
            await asyncio.sleep(self._terms.silence / _SIGNS_OF_LIFE)
