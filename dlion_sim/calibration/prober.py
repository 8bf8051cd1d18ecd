"""A node's part in measuring a mesh: it answers, and measures paths when node 0, which has the order, asks. No I/O."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import combinations

from dlion_sim.calibration.probe import Intake, Load, Measured, PathFound, Ping, Pong, Probe, Received, Turn
from dlion_sim.protocol.events import Send
from dlion_sim.protocol.messages import Body, MalformedMessageError, Message

Pair = tuple[int, int]
"""A sending and a receiving node."""


def one_by_one(nodes: int) -> Iterator[list[Pair]]:
    """Rounds of one pair each, one direction after the other."""
    for one, other in combinations(range(nodes), 2):
        yield [(one, other)]
        yield [(other, one)]


def tournament(hosts: Sequence[Hashable]) -> Iterator[list[Pair]]:
    """Rounds of pairs that share no machine; `hosts` names the one of each node.

    A round-robin tournament: where every node has a machine of its own, all n of them (but one, if n is odd) take part
    in each of 2 (n - 1) rounds (2 n).
    """
    # The circle method: the first node stays, the others rotate by one place per round; opposite ones are paired.
    players: list[int | None] = [*range(len(hosts)), *([None] if len(hosts) % 2 else [])]
    half = len(players) // 2
    for _ in range(len(players) - 1):
        met = [
            (min(one, other), max(one, other))
            for one, other in zip(players[:half], reversed(players[half:]), strict=True)
            if one is not None and other is not None
        ]
        for together in _apart(met, hosts):
            yield together
            yield [(other, one) for one, other in together]
        players = [players[0], players[-1], *players[1:-1]]


def _apart(pairs: Sequence[Pair], hosts: Sequence[Hashable]) -> list[list[Pair]]:
    """The pairs in groups, in none of which two share a machine."""
    groups: list[tuple[list[Pair], set[Hashable]]] = []
    for pair in pairs:
        machines = {hosts[node] for node in pair}
        for group, busy in groups:
            if not busy & machines:
                group.append(pair)
                busy |= machines
                break
        else:
            groups.append(([pair], machines))
    return [group for group, _ in groups]


class Prober:
    """Node `rank` of `nodes`, in a mesh in which node 0 has the `rounds`; throughput is measured over `seconds`.
    `acknowledged` tells how many acknowledgements have come from a peer for each full frame.

    Methods return messages to send, or raise MalformedMessageError, with nothing changed, for an invalid message.
    """

    def __init__(
        self,
        rank: int,
        nodes: int,
        rounds: Iterable[Sequence[Pair]],
        seconds: float,
        acknowledged: Callable[[int], float],
    ) -> None:
        self._rank = rank
        self._nodes = nodes
        self._rounds = deque(rounds)
        self._seconds = seconds
        self._acknowledged = acknowledged
        self._open: set[Pair] = set()
        """Pairs of the present round that were not measured yet."""
        self._probe: Probe | None = None
        self._intakes: dict[int, Intake] = {}
        self.paths: dict[Pair, PathFound] = {}
        """The measured paths; at node 0."""

    @property
    def is_over(self) -> bool:
        """Whether node 0 has all paths."""
        return not self._rounds and not self._open

    def begin(self, now: float) -> list[Send]:
        """All nodes are connected: the next round."""
        if self.is_over:
            return []
        turns = self._rounds.popleft()
        self._open = set(turns)
        sends = []
        for sender, receiver in turns:
            sends += self._measure(receiver, now) if sender == self._rank else [self._send(sender, Turn(receiver))]
        return sends

    def arrived(self, message: Message, now: float) -> list[Send]:
        peer = message.sender
        match message.body:
            case Turn(receiver) if peer == 0 and self._probe is None and receiver < self._nodes:
                if receiver != self._rank:
                    return self._measure(receiver, now)
            case Ping(number):
                return [self._send(peer, Pong(number))]
            case Pong(number) if self._probe and peer == self._probe.receiver:
                return self._to_receiver(self._probe.answered(number, now))
            case Load() as load:
                taken = self._intakes.setdefault(peer, Intake()).take(message, load, now)
                return [self._send(peer, Received(*taken))] if taken else []
            case Received(size, seconds) if self._probe and peer == self._probe.receiver:
                path = self._probe.received(size, seconds, self._acknowledged(peer))
                self._probe = None
                return self._found((self._rank, peer), path, now)
            case Measured(receiver, bps, least, median, share) if (peer, receiver) in self._open:
                return self._found((peer, receiver), PathFound(bps, least, median, share), now)
        raise MalformedMessageError("it has no place in measuring")

    def left(self, peer: int, now: float) -> list[Send]:
        """A message on the data channel was sent to a peer."""
        return self._to_receiver(self._probe.left(now)) if self._probe and peer == self._probe.receiver else []

    def _measure(self, receiver: int, now: float) -> list[Send]:
        self._probe = Probe(self._rank, receiver, self._seconds, now)
        return [Send(receiver, self._probe.begin())]

    def _found(self, pair: Pair, path: PathFound, now: float) -> list[Send]:
        """Node 0 stores it, and begins the next round after the last path; others send it to node 0."""
        if self._rank != 0:
            return [self._send(0, Measured(pair[1], *path))]
        self.paths[pair] = path
        self._open.discard(pair)
        return [] if self._open else self.begin(now)

    def _to_receiver(self, messages: Iterable[Message]) -> list[Send]:
        assert self._probe
        return [Send(self._probe.receiver, message) for message in messages]

    def _send(self, peer: int, body: Body) -> Send:
        return Send(peer, Message(self._rank, body))
