"""Which incarnation is meant where nodes tell who is there, and how long it took until others knew."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dlion_sim.results import MembershipRow

_ENDS = ("down", "left")


def with_incarnations(rows: Iterable[MembershipRow]) -> Iterator[MembershipRow]:
    """The rows of all nodes in order, with what a node does not know of another one.

    What is told of who ends or begins says which incarnation that is; others lose and find the latest one. It was
    noticed to have ended so many seconds later.
    """
    ended: dict[int, float] = {}
    incarnations: dict[int, int] = {}
    for row in sorted(rows, key=lambda row: (row.virtual_time, row.what not in _ENDS)):
        who, seconds = row.participant, row.seconds
        match row.what:
            case "down" | "left":
                ended[who] = row.virtual_time
            case "up":
                ended.pop(who, None)
                incarnations[who] = row.incarnation
            case "lost" if who in ended:
                seconds = row.virtual_time - ended[who]
            case _:
                pass
        of_others = row.what in ("lost", "found")
        incarnation = incarnations.get(who, 0) if of_others else row.incarnation
        yield row._replace(incarnation=incarnation, seconds=seconds)
