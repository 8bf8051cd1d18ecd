"""Checks of the arrays of a checkpoint, which is not trusted: compiled code does not check indices.

Indices are within bounds, lists end and are disjoint, and every packet is in exactly one place.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from dlion_sim.simulation.packets.memory import Memory
from dlion_sim.simulation.packets.state import (
    ARRAYS,
    BOUNDED,
    CLASSES,
    DATA,
    KINDS,
    LONGEST_PATH,
    MAPPING,
    NONE,
    OUT,
    PIECES,
    RAW,
    REPLY,
    SEND,
    WAKE,
)

_MOST = 2**62
_Within = Iterator[tuple[Any, Any, Any]]
"""Values with their lower and upper bounds."""


def check(memory: Memory) -> None:
    """Raise ValueError unless compiled code can use it."""
    used = {name: memory[name][: memory.used(name) or None] for name in ARRAYS}
    for within in (_numbers(used), _of_connections(used), _of_packets(used)):
        for values, least, most in within:
            if not ((np.asarray(values) >= least) & (np.asarray(values) <= most)).all():
                raise ValueError("indices of packets are out of bounds")
    _check_lists(used)


def _numbers(used: dict[str, npt.NDArray[Any]]) -> _Within:
    """Bounds of single values."""
    [state] = used["state"]
    ports, queues, pipes, paths, heap = (used[name] for name in ("ports", "queues", "pipes", "paths", "heap"))
    last = {name: len(array) - 1 for name, array in used.items()}
    yield len(queues), CLASSES * len(ports), CLASSES * len(ports)
    yield len(used["receivers"]), len(used["senders"]), len(used["senders"])
    yield [len(used[name]) for name in PIECES], len(used[PIECES[0]]), _MOST
    yield len(used["allowed"]), len(used["missing"]), _MOST
    yield [state[name] for name in ("noted", "hops", "made", "ended", "scheduled")], 0, _MOST
    yield state["noted"], 0, 0
    yield state["next_free"], NONE, last["packets"]
    yield ports["switch"], NONE, last["switches"]
    yield ports["sending"], NONE, last["packets"]
    yield ports["rate"], 0, np.inf
    yield ports["burst"], 0, _MOST
    yield ports["free"], -np.inf, np.inf
    for name, of in (
        ("first", "packets"),
        ("last", "packets"),
        ("ready_first", "connections"),
        ("ready_last", "connections"),
    ):
        yield queues[name], NONE, last[of]
    bits = 1 << np.arange(CLASSES)
    for mask, name in (("waiting", "first"), ("ready", "ready_first")):
        present = ((queues[name] != NONE).reshape(-1, CLASSES) * bits).sum(axis=1)
        yield ports[mask], present, present
    for name in ("first", "last"):
        yield pipes[name], NONE, last["packets"]
    yield paths, NONE, last["ports"]
    yield paths[:, 0], 0, last["ports"]
    yield paths[:, LONGEST_PATH], NONE, NONE
    entries, commands = heap[: state["entries"]], used["commands"][: state["commands"]]
    yield state["entries"], 0, len(heap)
    yield state["commands"], 0, len(used["commands"])
    kinds = np.array([last["ports"], last["pipes"], last["connections"]])
    yield entries["of"] // KINDS, 0, kinds[entries["of"] % KINDS]
    yield commands["what"], 0, 2
    yield commands["of"], 0, np.where(commands["what"] <= WAKE, last["connections"], last["ports"])
    yield commands["value"][commands["what"] == SEND], 0, last["messages"]
    for name in ("messages", "slots"):
        of = "messages" if name == "slots" else "connections"
        yield used[name]["message" if name == "slots" else "connection"], 0, max(last[of], 0)
    yield used["messages"]["next"], NONE, last["messages"]


def _of_connections(used: dict[str, npt.NDArray[Any]]) -> _Within:
    each = used["connections"]
    last = {name: len(array) - 1 for name, array in used.items()}
    yield each["kind"], RAW, BOUNDED
    yield each["priority"], 0, CLASSES - 1
    yield each["nic"], 0, last["ports"]
    yield each["payload"], 1, 2**30
    for first, count, turn in (("path", "paths", "turn"), ("back", "backs", "back_turn")):
        yield each[count], 0 if count == "backs" else 1, len(used["paths"])
        yield each[first], 0, len(used["paths"]) - each[count]
        yield each[turn], 0, np.maximum(each[count] - 1, 0)
    for name in ("pipe", "back_pipe"):
        yield each[name], NONE, last["pipes"]
    for name in ("first", "sending", "arriving", "newest"):
        yield each[name], NONE, last["messages"]
    yield each["next_ready"], NONE, last["connections"]
    sends = each[(each["kind"] != RAW) & (each["kind"] != BOUNDED)]
    yield sends["backs"], 1, len(used["paths"])
    yield sends["room"], 1, last["slots"] + 1
    yield sends["room"] & (sends["room"] - 1), 0, 0
    yield sends["slots"], 0, len(used["slots"]) - sends["room"]
    yield sends["acknowledged"], 0, sends["expected"]
    yield sends["expected"], 0, sends["next"]
    yield sends["next"], 0, np.minimum(sends["end"], sends["acknowledged"] + sends["room"])
    for name in ("oldest", "latest", "lost_first", "lost_last"):
        yield sends[name], NONE, sends["next"] - 1
    bounded = each[each["kind"] == BOUNDED]
    yield bounded["backs"], 1, len(used["paths"])
    yield bounded["endpoint"], 0, last["senders"]
    yield np.unique(bounded["endpoint"], return_counts=True)[1], 1, 1
    for first, count, room, of in (
        ("pieces", "count", "count_room", PIECES[0]),
        ("groups", "group_count", "group_count_room", "missing"),
    ):
        yield bounded[count], 0, bounded[room]
        yield bounded[first], 0, len(used[of]) - bounded[room]
    for record in bounded:
        pieces = slice(int(record["pieces"]), int(record["pieces"] + record["count"]))
        yield used["order"][pieces], 0, record["count"] - 1
        yield used["group"][pieces], 0, record["group_count"] - 1
        yield used["urgency"][pieces], 0, CLASSES - 1
        sender = used["senders"][record["endpoint"]]
        yield sender["packets"], 0, record["count"]
        yield sender["position"], 0, sender["packets"]


def _of_packets(used: dict[str, npt.NDArray[Any]]) -> _Within:
    [state] = used["state"]
    packets, connections = used["packets"], used["connections"]
    yield packets["next"], NONE, len(packets) - 1
    yield state["free"], 0, len(packets)
    live = packets[_in_use(used)]
    yield live["connection"], 0, len(connections) - 1
    of = connections[live["connection"]]
    yield live["message"], 0, max(len(used["messages"]) - 1, 0)
    yield live["hop"], 0, LONGEST_PATH - 1
    yield live["priority"], 0, CLASSES - 1
    yield live["size"], 1, 2**31
    yield live["frame"], DATA, MAPPING
    is_reply = live["flags"] & REPLY != 0
    yield (
        live["path"],
        np.where(is_reply, of["back"], of["path"]),
        np.where(is_reply, of["back"] + of["backs"], of["path"] + of["paths"]) - 1,
    )
    is_segment = (of["kind"] != RAW) & (of["kind"] != BOUNDED)
    yield live["number"][is_segment], 0, of["next"][is_segment] - ~is_reply[is_segment]
    yield live["segment"][is_segment & is_reply], 0, of["next"][is_segment & is_reply] - 1
    is_piece = (of["kind"] == BOUNDED) & (live["frame"] == DATA) & (live["segment"] == of["serial"])
    yield live["number"][is_piece], 0, of["count"][is_piece] - 1


def _in_use(used: dict[str, npt.NDArray[Any]]) -> npt.NDArray[np.bool_]:
    """The packets on wires, in queues and in pipes. Raises ValueError unless all others are free."""
    [state] = used["state"]
    follows = used["packets"]["next"].tolist()
    seen = np.zeros(len(follows), np.bool_)
    wires = used["ports"]["sending"]
    wires = wires[wires != NONE]
    seen[wires] = True
    queued = 0
    for lists in (used["queues"], used["pipes"]):
        for first, last in zip(lists["first"].tolist(), lists["last"].tolist(), strict=True):
            queued += _walk(first, last, follows, seen)
    in_use = seen.copy()
    free = _walk(int(state["next_free"]), None, follows, seen)
    if (
        free != state["free"]
        or len(np.unique(wires)) + queued + free != len(follows)
        or len(np.unique(wires)) != len(wires)
    ):
        raise ValueError("packets are not in one place each")
    return in_use


def _check_lists(used: dict[str, npt.NDArray[Any]]) -> None:
    """Check the lists of ready connections, of messages, and of segments under way or lost."""
    connections, messages = used["connections"], used["messages"]
    ready = np.zeros(len(connections), np.bool_)
    follows = connections["next_ready"].tolist()
    for queue in used["queues"][used["queues"]["ready_first"] != NONE]:
        _walk(int(queue["ready_first"]), int(queue["ready_last"]), follows, ready)
    if (ready != connections["is_ready"]).any():
        raise ValueError("connections are ready that are not")
    after, listed = messages["next"].tolist(), np.zeros(len(messages), np.bool_)
    for record in connections[(connections["kind"] != RAW) & (connections["kind"] != BOUNDED)]:
        if record["first"] != NONE:
            _walk(int(record["first"]), int(record["newest"]), after, listed)
        room, first = int(record["room"]), int(record["slots"])
        slots = used["slots"][first : first + room]
        seen = np.zeros(room, np.bool_)
        out = 0
        for begin, end in (("oldest", "latest"), ("lost_first", "lost_last")):
            each, last = int(record[begin]), NONE
            while each != NONE:
                place = each & (room - 1)
                is_right = slots["previous"][place] == last and (slots["state"][place] == OUT) == (begin == "oldest")
                if seen[place] or not is_right or not record["acknowledged"] <= each < record["next"]:
                    raise ValueError("segments are listed that are not there")
                seen[place] = True
                out += begin == "oldest"
                each, last = int(slots["next"][place]), each
            if last != record[end]:
                raise ValueError("a list of segments ends elsewhere")
        if out != record["under_way"]:
            raise ValueError("other segments are under way")


def _walk(first: int, last: int | None, follows: list[int], seen: npt.NDArray[np.bool_]) -> int:
    """The length of a list, whose items are marked as `seen`. Raises ValueError if one was before."""
    count, before = 0, NONE
    while first != NONE:
        if seen[first]:
            raise ValueError("an item of a list is elsewhere, too")
        seen[first] = True
        count += 1
        before, first = first, follows[first]
    if last is not None and count and before != last:
        raise ValueError("a list ends elsewhere")
    return count
