"""Joining: how a worker with nothing but its initial parameters becomes a member of a run in progress.

It waits for the hello of every reachable neighbour. If members wait for all their peers, its first iteration is the
first one of which all members send it everything, and it announces that at once. If they wait for some of their peers,
it begins with that one or a later one: members that are behind do not wait for it until then. Otherwise it begins when
it has the state. The state comes from a sponsor, one of the members, as soon as that has reached the iteration; or from
the parameter servers, a part from each.
"""

from __future__ import annotations

import math

import torch

from dlion_sim.protocol.choices import Choices, Setup
from dlion_sim.protocol.events import Action
from dlion_sim.protocol.exchange.parameter_server import ServedExchange
from dlion_sim.protocol.membership import Membership
from dlion_sim.protocol.membership_messages import Begins, Hello, NotBefore, StateRequest
from dlion_sim.protocol.messages import MalformedMessageError, Message
from dlion_sim.protocol.state_transfer import StateTransfer, state_of, take_over


class Joining:
    """The state of a joining worker, which was started at time `began` (seconds)."""

    def __init__(self, setup: Setup, choices: Choices, members: Membership, began: float) -> None:
        self.began = began
        self._setup = setup
        self._choices = choices
        self._members = members
        self._unresolved = set(setup.mixing) - setup.absent
        """Neighbours that are neither known to be connected nor lost."""
        self._hellos: dict[int, Hello] = {}
        """Those of members, in the order of arrival."""
        self._held: dict[int, list[Action]] = {}
        """The choices' messages to each member, which follow `Begins`."""
        self._first: int | None = None
        """The first iteration that was announced to members; None if it follows from the state."""
        self._earliest: int | None = None
        """If that follows from the state and members may wait for this worker: the first one that it can be."""
        self._postponed: set[int] = set()
        """The members that know of it."""
        self._transfers: dict[int, StateTransfer] = {}
        """By sponsor."""
        self._least = 0
        """The first iteration without contributions of workers that have left, which only others may have."""

    def found(self, peer: int) -> None:
        self._unresolved.discard(peer)

    def lost(self, peer: int) -> None:
        self._unresolved.discard(peer)
        self._hellos.pop(peer, None)
        self._held.pop(peer, None)
        self._postponed.discard(peer)
        self._transfers.pop(peer, None)

    def left(self, peer: int, iteration: int) -> None:
        """A neighbour left before `iteration`; its contributions may have reached others only."""
        self.lost(peer)
        self._least = max(self._least, iteration)

    def receive_hello(self, peer: int, hello: Hello, actions: list[Action]) -> None:
        """A member's hello has arrived, to which the choices answer with `actions`."""
        self._hellos[peer], self._held[peer] = hello, actions

    def take(self, message: Message) -> None:
        """A part of a state has arrived. Raises MalformedMessageError, with nothing changed, if it is unexpected."""
        if message.sender not in self._transfers:
            raise MalformedMessageError("a state that was not requested")
        self._transfers[message.sender].take(message)

    def proceed(self) -> list[Action]:
        """Announce the first iteration to members and request state, as far as that is possible by now."""
        if not self._hellos or (not self._has_all_hellos and self._first is None and self._earliest is None):
            return []
        actions: list[Action] = []
        possible = max(self._least, *(hello.first for hello in self._hellos.values()))
        if self._first is not None:
            actions = self._announce(self._first)
        elif self._waits:
            self._first = possible
            actions = [*self._announce(self._first), *self._choices.synchronization.entered(self._first)]
        elif self._choices.synchronization.waits_for_peers:
            self._earliest = possible if self._earliest is None else self._earliest
            actions = self._postpone(self._earliest)
        return [*actions, *self._request_state()]

    @property
    def outcome(self) -> tuple[int, int | None] | None:
        """The first iteration, and the sponsor, once the state is complete.

        If there are no members, the lowest-numbered joining worker begins without a sponsor.
        """
        if self._transfers:
            complete = self._has_requested and all(transfer.is_complete for transfer in self._transfers.values())
            begin = max(transfer.iteration for transfer in self._transfers.values())
            return (begin, next(iter(self._transfers))) if complete else None
        is_lowest = all(self._setup.worker < peer for peer in self._setup.peers)
        return (self._first or 0, None) if self._has_all_hellos and not self._hellos and is_lowest else None

    def begin(self, iteration: int) -> list[Action]:
        """Load the state, with which `iteration` begins; announce it to the remaining members."""
        exchange, applied = self._choices.exchange, dict[int, int]()
        for sponsor, transfer in self._transfers.items():
            if isinstance(exchange, ServedExchange):
                self._setup.replica.write(exchange.stretches[sponsor][0], transfer.tensors[0])
            else:
                applied = take_over(self._setup, self._choices.all, transfer.tensors)
                applied[sponsor] = iteration - 1
        if exchange.needs_servers:  # They have no schedule of learning rates.
            _, *others = self._setup.replica.state()
            self._setup.replica.take_over([torch.tensor([float(iteration)]), *others])
        actions = self._announce(iteration)
        # A member's contributions count from the first one on that is not in the state.
        unknown = -1 if self._first is None else self._first - 1
        for peer, hello in self._hellos.items():
            self._members.expect(peer, max(hello.first, applied.get(peer, unknown) + 1))
        return [*actions, *self._choices.synchronization.entered(iteration)]

    @property
    def _has_all_hellos(self) -> bool:
        """Whether the hellos of all reachable neighbours are here; or of all servers, as it needs each."""
        if self._choices.exchange.needs_servers:
            return len(self._hellos) == len(self._setup.mixing)
        return not self._unresolved and not self._members.without_hello

    @property
    def _has_requested(self) -> bool:
        return len(self._transfers) == (len(self._setup.mixing) if self._choices.exchange.needs_servers else 1)

    @property
    def _waits(self) -> bool:
        """Whether all members wait for this worker's first iteration, so that it has to be announced in advance."""
        exchange = self._choices.exchange
        waits = self._choices.synchronization.waits_for_peers and not exchange.joins_with_state
        return waits or exchange.needs_servers

    def _announce(self, first: int) -> list[Action]:
        actions: list[Action] = []
        for peer in [peer for peer in self._members.unsettled if peer in self._hellos]:
            since = max(first, self._hellos[peer].first)
            self._members.settle(peer, since)
            actions += [self._members.send(peer, Begins(since)), *self._held.pop(peer)]
        return actions

    def _postpone(self, earliest: int) -> list[Action]:
        behind = [peer for peer, hello in self._hellos.items() if hello.first < earliest]
        new = [peer for peer in behind if peer not in self._postponed]
        self._postponed.update(new)
        return [self._members.send(peer, NotBefore(earliest)) for peer in new]

    def _request_state(self) -> list[Action]:
        actions: list[Action] = []
        for sponsor in [] if self._has_requested else self._sponsors():
            if sponsor in self._transfers:
                continue
            firsts = (self._first, self._earliest, self._hellos[sponsor].first)
            least = next(first for first in firsts if first is not None)
            numbers = 0 if self._choices.exchange.needs_servers else 2
            self._transfers[sponsor] = StateTransfer(
                least, self._sizes(sponsor), self._setup.replica.layout.size, numbers=numbers
            )
            actions.append(self._members.send(sponsor, StateRequest(least)))
        return actions

    def _sponsors(self) -> list[int]:
        """All servers; or one member, by the setting `sponsor`, of those that are not further behind than peers may
        be."""
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
        exchange = self._choices.exchange
        if isinstance(exchange, ServedExchange):
            begin, end = exchange.stretches[sponsor]
            return [end - begin]
        return [len(tensor) for tensor in state_of(self._setup, self._choices.all, {})]
