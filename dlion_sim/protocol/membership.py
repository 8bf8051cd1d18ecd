"""Who takes part, as one worker sees it: whom it waits for, whose contributions count, and who is to be let in.

There is no coordinator. Two that find each other each say how they stand (`Hello`). A member sends everything to the
newcomer from then on, and waits for it as synchronization says, so that it does not run away; the newcomer, which hears
all members, decides when it begins (`Begins`). Who goes in good order says so after its last contribution (`Leaving`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dlion_sim.protocol.choices import Choices, Peer, Setup
from dlion_sim.protocol.events import Send
from dlion_sim.protocol.faults import LocalProtocolError, MalformedMessageError
from dlion_sim.protocol.membership_messages import Begins, Hello, StateRequest
from dlion_sim.protocol.messages import Channel, Message
from dlion_sim.protocol.updates import Update


@dataclass(slots=True)
class Meeting:
    """With a peer that is found, until both know from when on its contributions count."""

    told: int | None = None
    """The first iteration of which it gets everything, as it was told; None: this worker is no member either."""
    heard: Hello | None = None


class Membership:
    """The peers of a worker, and how it stands with each."""

    def __init__(self, setup: Setup, choices: Choices) -> None:
        self._setup = setup
        self._exchange = choices.exchange
        self._synchronization = choices.synchronization
        self.peers = {peer: Peer(peer, newest=self._exchange.covers(-1)) for peer in setup.peers}
        """Those that there are, and those that are lost and waited for."""
        self.departed: set[int] = set()
        """Who has taken leave, and is still connected: what else it had sent means nothing any more."""
        self._meetings: dict[int, Meeting] = {}
        self._uncounted: set[int] = set()
        """Of the peers those whose contributions do not count yet, or did not until now."""
        self.last_words: list[Update] = []
        """What those who have taken leave have contributed, and is still to be applied."""
        self._last: set[int] = set()
        """Whose they are, or were until now."""
        self._newcomers: set[int] = set()
        """Who may ask for state."""
        self._requests: dict[int, int] = {}
        """Who has, and for that of which iteration."""

    @property
    def strangers(self) -> list[int]:
        """Connected peers that have not said anything."""
        return [peer for peer, meeting in self._meetings.items() if meeting.heard is None]

    @property
    def unsettled(self) -> list[int]:
        """Connected peers of which is not known when they begin."""
        return list(self._meetings)

    def found(self, peer: int) -> None:
        """There is a connection with a peer. Raises LocalProtocolError if there was one."""
        if self._setup.links.is_connected(peer):
            raise LocalProtocolError(f"{peer} was found, and had not been lost")
        self.departed.discard(peer)
        self._setup.links.found(peer)
        self.peers[peer] = Peer(peer, since=None)
        self._meetings[peer] = Meeting()
        self._uncounted.add(peer)

    def greet(self, peer: int, hello: Hello) -> Send:
        """Tell a peer that was found how this worker stands."""
        if hello.member:
            self._meetings[peer].told = hello.first
            self._cover(peer, hello.first)
        return self.say(peer, hello)

    def say(self, peer: int, body: Hello | Begins | StateRequest) -> Send:
        """Tell a peer something."""
        return Send(peer, Message(self._setup.worker, body))

    def heard(self, peer: int, hello: Hello) -> bool:
        """A peer says how it stands. Returns whether both are members, so that all is settled.

        Raises MalformedMessageError, with nothing changed, where that was not to be said.
        """
        meeting = self._meetings.get(peer)
        if meeting is None or (meeting.heard and (meeting.heard.member or not hello.member)):
            raise MalformedMessageError(f"another hello of {peer}")
        meeting.heard = hello
        if not hello.member:
            self._newcomers.add(peer)
        elif meeting.told is not None:
            self.settle(peer, max(meeting.told, hello.first))
            return True
        return False

    def begins(self, peer: int, iteration: int) -> None:
        """A newcomer says when it begins. Raises MalformedMessageError, with nothing changed, where it cannot."""
        meeting = self._meetings.get(peer)
        if meeting is None or meeting.told is None or meeting.heard is None or meeting.heard.member:
            raise MalformedMessageError(f"{peer} begins where it takes part, or cannot")
        if iteration < meeting.told:
            raise MalformedMessageError(f"{peer} begins with iteration {iteration}, before {meeting.told}")
        self.settle(peer, iteration)

    def settle(self, peer: int, iteration: int) -> None:
        """A peer takes part from `iteration` on."""
        del self._meetings[peer]
        self._cover(peer, iteration)
        since = self.peers[peer].since
        self.peers[peer].since = iteration if since is None else min(since, iteration)

    def requested(self, peer: int, iteration: int) -> None:
        """A newcomer asks for state. Raises MalformedMessageError, with nothing changed, where it may not."""
        if peer not in self._newcomers or peer in self._requests:
            raise MalformedMessageError(f"{peer} asks for state that is not for it")
        self._newcomers.remove(peer)
        self._requests[peer] = iteration

    def answerable(self, iteration: float) -> dict[int, int]:
        """Who gets the state of `iteration`, of which iteration each one needs it at least; they are answered now."""
        now = {peer: least for peer, least in self._requests.items() if least <= iteration}
        for peer in now:
            del self._requests[peer]
        return now

    def may_say(self, message: Message) -> bool:
        """Whether a message for the choices can come from its sender as it stands: first it says when it begins.

        Only what is on the same channel is known to come later than that.
        """
        meeting = self._meetings.get(message.sender)
        begun = meeting is None or (meeting.heard is not None and meeting.heard.member)
        return begun or message.body.channel is not Channel.CONTROL

    def admits(self, update: Update) -> bool:
        """Note a peer's contribution; whether it counts, and not what was before its sender, or this worker, began."""
        peer, iteration = self.peers[update.sender], update.body.iteration
        peer.newest = max(peer.newest, self._exchange.covers(iteration))
        if peer.since is None and (told := self._meetings[peer.number].told) is not None:
            peer.since = max(iteration, told)  # It has begun, and the word of it is still on its way.
        return peer.since is None or iteration >= peer.since

    def counting(self, iteration: int) -> Sequence[int]:
        """The peers whose contributions enter the mean at the end of `iteration`, as far as they come."""
        if not self._uncounted and not self._last:
            return self._setup.peers
        later = {peer for peer in self._uncounted if not self._counts(peer, iteration)}
        present = tuple(peer for peer in self._setup.peers if peer not in later)
        return *present, *sorted(self._last.difference(present))

    def begin(self, iteration: int) -> None:
        """This worker begins with `iteration`: what those who have left contributed to earlier ones is of no use."""
        self.last_words = [word for word in self.last_words if word.body.iteration >= iteration]
        self._last = {word.sender for word in self.last_words}

    def ended(self, iteration: int) -> None:
        """`iteration` has ended: what was due is applied."""
        if self._uncounted:
            self._uncounted = {peer for peer in self._uncounted if not self._counts(peer, iteration)}
        if self._last:
            self._last = {update.sender for update in self.last_words}

    def applied(self, inbox: Sequence[Update]) -> dict[int, int]:
        """The newest iteration of each peer's contributions that are here and not in the inbox."""
        newest = {peer: self.peers[peer].newest for peer in self._setup.peers}
        for update in inbox:
            if update.sender in newest:
                newest[update.sender] = min(newest[update.sender], update.body.iteration - 1)
        return newest

    def lost(self, peer: int) -> bool:
        """A peer is lost; returns whether it took part, or was about to. It may still be waited for."""
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
        """Go on as if a peer had never been there."""
        self._forget(peer)
        del self.peers[peer]
        self._uncounted.discard(peer)

    def left(self, peer: int, contributions: Sequence[Update]) -> None:
        """A peer takes leave: nobody waits for it, and those contributions of it that are to be applied count."""
        self.remove(peer)
        self.departed.add(peer)
        if contributions:
            self.last_words += contributions
            self._last.add(peer)

    def _forget(self, peer: int) -> None:
        self._setup.links.lost(peer)
        self._meetings.pop(peer, None)
        self._newcomers.discard(peer)
        self._requests.pop(peer, None)

    def _cover(self, peer: int, iteration: int) -> None:
        """Nothing from before `iteration` is waited for."""
        self.peers[peer].newest = max(self.peers[peer].newest, self._exchange.covers(iteration - 1))

    def _counts(self, peer: int, iteration: int) -> bool:
        """Whether the first contribution of a peer can be applied at the end of `iteration`."""
        since = self.peers[peer].since
        return since is not None and self._synchronization.due(since, iteration) != "later"
