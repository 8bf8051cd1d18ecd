"""How a worker that has nothing but its initial parameters comes to take part in a run that is under way.

It waits until everyone it can reach has said how they stand. Where peers are waited for, it then begins with the first
iteration of which all of them send it everything, and tells them at once; else when it has its state. That it gets of a
sponsor, one of the members, as soon as the sponsor is that far; or of parameter servers, of each its part.
"""

from __future__ import annotations

import math

from dlion_sim.protocol.choices import Choices, Setup
from dlion_sim.protocol.events import Action
from dlion_sim.protocol.exchange.parameter_server import ParameterServerExchange
from dlion_sim.protocol.faults import MalformedMessageError
from dlion_sim.protocol.membership import Membership
from dlion_sim.protocol.membership_messages import Begins, Hello, StateRequest
from dlion_sim.protocol.messages import Message
from dlion_sim.protocol.state_transfer import StateTransfer, state_of, take_over


class Joining:
    """What a newcomer knows, and has asked for, since it was started at time `began` (seconds)."""

    def __init__(self, setup: Setup, choices: Choices, members: Membership, began: float) -> None:
        self.began = began
        self._setup = setup
        self._choices = choices
        self._members = members
        self._unknown = set(setup.mixing) - setup.absent
        """Neighbours of which it is not known yet whether they are there."""
        self._hellos: dict[int, Hello] = {}
        """What members have said, in the order in which that came."""
        self._held: dict[int, list[Action]] = {}
        """What the choices have to say to each of them, once it is told when this worker begins."""
        self._first: int | None = None
        """The iteration to begin with at the earliest, as members were told."""
        self._handovers: dict[int, StateTransfer] = {}
        """By sponsor."""
        self._least = 0
        """The first iteration for which there is nothing that others have from those who have left."""

    def met(self, peer: int) -> None:
        """It is known whether a neighbour is there."""
        self._unknown.discard(peer)

    def lost(self, peer: int) -> None:
        """A neighbour is not there, or no more."""
        self.met(peer)
        self._hellos.pop(peer, None)
        self._held.pop(peer, None)
        self._handovers.pop(peer, None)

    def left(self, peer: int, iteration: int) -> None:
        """A neighbour takes no part from `iteration` on; what it has contributed, others may have alone."""
        self.lost(peer)
        self._least = max(self._least, iteration)

    def heard(self, peer: int, hello: Hello, actions: list[Action]) -> None:
        """A member says how it stands, and the choices have `actions` to answer."""
        self._hellos[peer], self._held[peer] = hello, actions

    def take(self, message: Message) -> None:
        """A part of a state is here. Raises MalformedMessageError, with nothing changed, if that was not to come."""
        if message.sender not in self._handovers:
            raise MalformedMessageError("a state that nobody has asked for")
        self._handovers[message.sender].take(message)

    def proceed(self) -> list[Action]:
        """Tell members when it begins, and ask for state, as far as that can be done by now."""
        if not self._hellos or (self._first is None and not self._knows_everyone):
            return []
        actions: list[Action] = []
        if self._first is not None:
            actions = self._tell(self._first)
        elif self._waits:
            self._first = max(self._least, *(hello.first for hello in self._hellos.values()))
            actions = [*self._tell(self._first), *self._choices.synchronization.entered(self._first)]
        return [*actions, *self._ask()]

    @property
    def outcome(self) -> tuple[int, int | None] | None:
        """The iteration to begin with, and who the sponsor is, once the state is here.

        Where there are no members, the lowest of those who find each other begins, and has none.
        """
        if self._handovers:
            complete = self._has_asked and all(handover.is_complete for handover in self._handovers.values())
            begin = max(handover.iteration for handover in self._handovers.values())
            return (begin, next(iter(self._handovers))) if complete else None
        is_lowest = all(self._setup.worker < peer for peer in self._setup.peers)
        return (self._first or 0, None) if self._knows_everyone and not self._hellos and is_lowest else None

    def begin(self, iteration: int) -> list[Action]:
        """Take the state over, with which `iteration` begins; tell those who are still to be told."""
        exchange, applied = self._choices.exchange, dict[int, int]()
        for sponsor, handover in self._handovers.items():
            if isinstance(exchange, ParameterServerExchange):
                self._setup.replica.write(exchange.stretches[sponsor][0], handover.tensors[0])
            else:
                applied = take_over(self._setup, self._choices.all, handover.tensors)
                applied[sponsor] = iteration - 1
        actions = self._tell(iteration)
        # Of each member what comes after the newest contribution that the state has.
        unknown = -1 if self._first is None else self._first - 1
        for peer, hello in self._hellos.items():
            self._members.peers[peer].since = max(hello.first, applied.get(peer, unknown) + 1)
        return [*actions, *self._choices.synchronization.entered(iteration)]

    @property
    def _knows_everyone(self) -> bool:
        """Whether all are heard that are there; or all servers, none of which it can do without."""
        if self._choices.exchange.needs_servers:
            return len(self._hellos) == len(self._setup.mixing)
        return not self._unknown and not self._members.strangers

    @property
    def _has_asked(self) -> bool:
        """Whether all are asked for state that have to be."""
        return len(self._handovers) == (len(self._setup.mixing) if self._choices.exchange.needs_servers else 1)

    @property
    def _waits(self) -> bool:
        """Whether peers are waited for, or servers, which wait for it."""
        return self._choices.synchronization.waits_for_peers or self._choices.exchange.needs_servers

    def _tell(self, first: int) -> list[Action]:
        """Tell those members who have not been told."""
        actions: list[Action] = []
        for peer in [peer for peer in self._members.unsettled if peer in self._hellos]:
            since = max(first, self._hellos[peer].first)
            self._members.settle(peer, since)
            actions += [self._members.say(peer, Begins(since)), *self._held.pop(peer)]
        return actions

    def _ask(self) -> list[Action]:
        """Ask for state whoever has to be asked and is not."""
        actions: list[Action] = []
        for sponsor in [] if self._has_asked else self._sponsors():
            if sponsor in self._handovers:
                continue
            least = self._hellos[sponsor].first if self._first is None else self._first
            numbers = 0 if self._choices.exchange.needs_servers else 2
            self._handovers[sponsor] = StateTransfer(
                least, self._sizes(sponsor), self._setup.replica.layout.size, numbers=numbers
            )
            actions.append(self._members.say(sponsor, StateRequest(least)))
        return actions

    def _sponsors(self) -> list[int]:
        """Whom to ask: all servers; or one member, as chosen, of those who are not further behind than peers may be."""
        if self._choices.exchange.needs_servers:
            return list(self._hellos)
        synchronization = self._choices.synchronization
        lag = synchronization.lag(synchronization.parameters)
        least = 0 if lag is None else max(hello.first for hello in self._hellos.values()) - lag
        near = {peer: hello for peer, hello in self._hellos.items() if hello.first >= least}
        match self._setup.sponsor:
            case "nearest":
                return [next(iter(near))]
            case "least_loaded":
                return [min(near, key=lambda peer: (near[peer].queued, peer))]
            case _:
                return [min(near, key=lambda peer: (math.isnan(near[peer].loss), near[peer].loss, peer))]

    def _sizes(self, sponsor: int) -> list[int]:
        """How long the parts of its state are to be."""
        exchange = self._choices.exchange
        if isinstance(exchange, ParameterServerExchange):
            begin, end = exchange.stretches[sponsor]
            return [end - begin]
        return [len(tensor) for tensor in state_of(self._setup, self._choices.all, {})]
