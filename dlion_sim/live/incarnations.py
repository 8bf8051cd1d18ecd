"""Which incarnation is meant where nodes tell who is there, and how long it took until others knew."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from dlion_sim.results import MembershipRow

_ENDS = ("down", "left")


def with_incarnations(rows: Iterable[MembershipRow]) -> Iterator[MembershipRow]:
    """The rows of all nodes in order, with what a node does not know of another one.

    Whose process has ended is lost, and noticed to be so many seconds later, until another one of the same participant
    runs: that is the next incarnation.
    """
    ended: dict[int, float] = {}
    incarnations: defaultdict[int, int] = defaultdict(int)
    for row in sorted(rows, key=lambda row: (row.virtual_time, row.what not in _ENDS)):
        match row.what:
            case "down" | "left":
                ended[row.participant] = row.virtual_time
            case "up" if row.virtual_time > 0 and ended.pop(row.participant, 0.0) > 0:
                incarnations[row.participant] += 1
            case _:
                pass
        seconds = row.seconds
        if row.what == "lost" and row.participant in ended:
            seconds = row.virtual_time - ended[row.participant]
        yield row._replace(incarnation=incarnations[row.participant], seconds=seconds)
