"""Membership as one worker sees it: which peers it waits for, whose contributions count, and which peers join.

There is no coordinator. Two participants that connect exchange a `Hello`. From then on a member sends everything to a
joining worker, and waits for it as synchronization says, so that their iterations stay close. The joining worker, which
knows all members, chooses its first iteration (`Begins`). A worker that leaves gracefully says so after its last
contribution (`Leaving`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dlion_sim.protocol.choices import Choices, Peer, Setup
from dlion_sim.protocol.events import LocalProtocolError, Send
from dlion_sim.protocol.membership_messages import Begins, Hello, NotBefore, StateRequest
from dlion_sim.protocol.messages import Channel, MalformedMessageError, Message
from dlion_sim.protocol.updates import Update


@dataclass(slots=True)
class Handshake:
    """The state of a new connection, until both ends know the first iteration of the peer that counts."""

    announced: int | None = None
    """The first iteration that may be the peer's first, of which it gets everything; None: this worker is no member
    yet."""
    hello: Hello | None = None
    """The peer's."""

    def check_begins(self, peer: int, iteration: int) -> None:
        """Raise MalformedMessageError unless the peer, which is joining, may begin with `iteration`."""
        if self.announced is None or self.hello is None or self.hello.member:
            raise MalformedMessageError(f"{peer} begins with an iteration, but is not joining")
        if iteration < self.announced:
            raise MalformedMessageError(f"{peer} begins with iteration {iteration}, before {self.announced}")


class Membership:
    """A worker's peers and the state of each."""

    def __init__(self, setup: Setup, choices: Choices) -> None:
        self._setup = setup
        self._exchange = choices.exchange
        self._synchronization = choices.synchronization
        self.peers = {peer: Peer(peer, newest=self._exchange.covers(-1)) for peer in setup.peers}
        """Connected peers, and lost ones that are waited for."""
        self.departed: set[int] = set()
        """Peers that have left and are still connected: further messages of theirs are ignored."""
        self._handshakes: dict[int, Handshake] = {}
        self._uncounted: set[int] = set()
        """Peers whose contributions do not count yet in the present iteration."""
        self.final_updates: list[Update] = []
        """Contributions of peers that have left, still to be applied."""
        self._last: set[int] = set()
        """The senders of these, in the present iteration."""
        self._may_request: set[int] = set()
        """Joining workers that may request state."""
        self._requests: dict[int, int] = {}
        """Joining workers that have requested it, with the iteration of the state that they need."""

    @property
    def without_hello(self) -> list[int]:
        return [peer for peer, handshake in self._handshakes.items() if handshake.hello is None]

    @property
    def unsettled(self) -> list[int]:
        return list(self._handshakes)

    def found(self, peer: int) -> None:
        """A connection to a peer is new. Raises LocalProtocolError if there was one before."""
        if self._setup.links.is_connected(peer):
            raise LocalProtocolError(f"{peer} was found, but had not been lost")
        self.departed.discard(peer)
        self._setup.links.found(peer)
        self.peers[peer] = Peer(peer, since=None)
        self._handshakes[peer] = Handshake()
        self._uncounted.add(peer)

    def send_hello(self, peer: int, hello: Hello) -> Send:
        if hello.member:
            self._handshakes[peer].announced = hello.first
            self._cover(peer, hello.first)
        return self.send(peer, hello)

    def send(self, peer: int, body: Hello | Begins | NotBefore | StateRequest) -> Send:
        return Send(peer, Message(self._setup.worker, body))

    def receive_hello(self, peer: int, hello: Hello) -> bool:
        """A peer's hello has arrived. Returns whether both are members, which completes the handshake.

        Raises MalformedMessageError, with nothing changed, for an unexpected one.
        """
        handshake = self._handshakes.get(peer)
        if handshake is None or (handshake.hello and (handshake.hello.member or not hello.member)):
            raise MalformedMessageError(f"another hello of {peer}")
        handshake.hello = hello
        if not hello.member:
            self._may_request.add(peer)
        elif handshake.announced is not None:
            self.settle(peer, max(handshake.announced, hello.first))
            return True
        return False

    def receive_begins(self, peer: int, iteration: int) -> None:
        """A joining worker announces its first iteration. Raises MalformedMessageError, with nothing changed, if it
        cannot begin there."""
        self._handshakes.get(peer, Handshake()).check_begins(peer, iteration)
        self.settle(peer, iteration)

    def receive_not_before(self, peer: int, iteration: int) -> None:
        """A joining worker will not begin before `iteration`. Raises MalformedMessageError, with nothing changed, if it
        cannot begin there."""
        handshake = self._handshakes.get(peer, Handshake())
        handshake.check_begins(peer, iteration)
        handshake.announced = iteration
        self._cover(peer, iteration)

    def settle(self, peer: int, iteration: int) -> None:
        """A peer is a member from `iteration` on; its handshake is complete."""
        del self._handshakes[peer]
        self._cover(peer, iteration)
        since = self.peers[peer].since
        self.peers[peer].since = iteration if since is None else min(since, iteration)

    def expect(self, peer: int, iteration: int) -> None:
        """A peer's contributions count from `iteration` on, now that the state has the earlier ones."""
        self.peers[peer].since, self.peers[peer].received = iteration, iteration - 1

    def receive_state_request(self, peer: int, iteration: int) -> None:
        """A joining worker requests state. Raises MalformedMessageError, with nothing changed, if it may not."""
        if peer not in self._may_request or peer in self._requests:
            raise MalformedMessageError(f"{peer} requests state, but is not joining")
        self._may_request.remove(peer)
        self._requests[peer] = iteration

    def take_ready_requests(self, iteration: float) -> dict[int, int]:
        """Requests that the state of `iteration` answers, with the least iteration that each needs; they are
        removed."""
        now = {peer: least for peer, least in self._requests.items() if least <= iteration}
        for peer in now:
            del self._requests[peer]
        return now

    def may_send(self, message: Message) -> bool:
        """Whether a message for the choices is valid in its sender's state: a joining worker sends `Begins` first.

        Only messages of the same channel are known to arrive after that one.
        """
        handshake = self._handshakes.get(message.sender)
        begun = handshake is None or (handshake.hello is not None and handshake.hello.member)
        return begun or message.body.channel is not Channel.CONTROL

    def admits(self, update: Update) -> bool:
        """Register a peer's contribution. Returns whether it counts: its iteration is not before the sender's first
        one."""
        peer, iteration = self.peers[update.sender], update.body.iteration
        peer.newest = max(peer.newest, self._exchange.covers(iteration))
        peer.received = max(peer.received, iteration)
        if peer.since is None and (announced := self._handshakes[peer.number].announced) is not None:
            peer.since = max(iteration, announced)  # It has begun; its `Begins` is still under way.
        return peer.since is None or iteration >= peer.since

    def counting(self, iteration: int) -> Sequence[int]:
        """The peers whose contributions count at the end of `iteration`, received or not."""
        if not self._uncounted and not self._last:
            return self._setup.peers
        later = {peer for peer in self._uncounted if not self._counts(peer, iteration)}
        present = tuple(peer for peer in self._setup.peers if peer not in later)
        return *present, *sorted(self._last.difference(present))

    def begin(self, iteration: int) -> None:
        """This worker begins with `iteration`: earlier contributions of peers that have left are dropped."""
        self.final_updates = [update for update in self.final_updates if update.body.iteration >= iteration]
        self._last = {update.sender for update in self.final_updates}

    def ended(self, iteration: int) -> None:
        """`iteration` has ended: all due contributions are applied."""
        if self._uncounted:
            self._uncounted = {peer for peer in self._uncounted if not self._counts(peer, iteration)}
        if self._last:
            self._last = {update.sender for update in self.final_updates}

    def applied(self, inbox: Sequence[Update]) -> dict[int, int]:
        """The newest iteration of each peer's contributions that are applied, thus received and not in the inbox."""
        newest = {peer: self.peers[peer].received for peer in self._setup.peers}
        for update in inbox:
            if update.sender in newest:
                newest[update.sender] = min(newest[update.sender], update.body.iteration - 1)
        return newest

    def lost(self, peer: int) -> bool:
        """A peer is lost; returns whether it was a member or joining. It may still be waited for."""
        self.departed.discard(peer)
        if not self._setup.links.is_connected(peer):
            return False
        if self._setup.on_loss == "wait":
            self._forget(peer)
            self.peers[peer].since = None
            self._uncounted.add(peer)
        else:
            self.remove(peer)
        return True

    def remove(self, peer: int) -> None:
        self._forget(peer)
        del self.peers[peer]
        self._uncounted.discard(peer)

    def left(self, peer: int, contributions: Sequence[Update]) -> None:
        """A peer leaves gracefully: it is not waited for, and its `contributions` still to be applied count."""
        self.remove(peer)
        self.departed.add(peer)
        if contributions:
            self.final_updates += contributions
            self._last.add(peer)

    def _forget(self, peer: int) -> None:
        self._setup.links.lost(peer)
        self._handshakes.pop(peer, None)
        self._may_request.discard(peer)
        self._requests.pop(peer, None)

    def _cover(self, peer: int, iteration: int) -> None:
        """Do not wait for contributions from before `iteration`."""
        known = self.peers[peer]
        known.newest = max(known.newest, self._exchange.covers(iteration - 1))
        known.received = max(known.received, iteration - 1)

    def _counts(self, peer: int, iteration: int) -> bool:
        """Whether a peer's first contribution can be due by the end of `iteration`."""
        since = self.peers[peer].since
        return since is not None and self._synchronization.due(since, iteration) != "later"
