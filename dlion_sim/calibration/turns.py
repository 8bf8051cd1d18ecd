"""The order of measurements: each ordered pair of nodes once, and no two at a time on one machine. No I/O."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import combinations

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
