"""A packet-level network in virtual time, usable by itself: ports, connections over them, and messages.

A path is a tuple of ports, from the sender's NIC to the receiver's. The first port of a path is a host's own: no queue,
but whenever it is free it pulls a packet of those connections that may send, the most urgent class first, in turn among
equals. Every other port has a queue. A connection's latency passes after its first port.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dlion_sim.simulation.packets.bounded import CONTROL_FRAME
from dlion_sim.simulation.packets.loop import GROWS, SPARE, UP_TO_DATE, advance
from dlion_sim.simulation.packets.memory import Memory
from dlion_sim.simulation.packets.parts import Bounded, Completion, Endpoint, Pfabric, Pieces, Port, Raw, Reliable
from dlion_sim.simulation.packets.state import (
    ACKNOWLEDGED,
    BOUNDED,
    CLASSES,
    DELIVERED,
    HEADER,
    LONGEST_PATH,
    NEVER,
    NONE,
    PFABRIC,
    PIECES,
    RAW,
    RELIABLE,
    RESIZE,
    SEGMENT,
    SEND,
    WAKE,
    WANTS_ROOM,
)
from dlion_sim.transport.bounds import Bound
from dlion_sim.transport.cutting import Cut
from dlion_sim.transport.dlcp import open_sender

__all__ = ["CLASSES", "Bounded", "Completion", "PacketNetwork", "Pfabric", "Port", "Raw", "Reliable"]

RELIABLY = Reliable()
_UNBOUNDED = 2**62
_ROOM = 32
"""Segments that a connection can keep account of at first."""
_MOST_EVENTS = 200_000
"""Between two looks at whether anybody wants to interrupt."""
_WHAT: tuple[Literal["sent", "delivered", "acknowledged"], ...] = ("sent", "delivered", "acknowledged")


class PacketNetwork:
    """Ports by number, and what is sent over them.

    `switches` are the bytes of buffers that ports share. With `spray` each packet takes the next one of its
    connection's paths in turn, otherwise all take the first. With `by_size` queues send first, and drop last, what has
    least left of its message (pFabric). Random losses come from `seed`.
    """

    def __init__(
        self,
        ports: Sequence[Port],
        *,
        switches: Sequence[float] = (),
        spray: bool = False,
        by_size: bool = False,
        seed: int = 0,
    ) -> None:
        self._memory = memory = Memory()
        memory.take("state")
        self._state["spray"], self._state["by_size"], self._state["seed"] = spray, by_size, seed
        self._state["next_free"] = NONE
        memory.take("ports", len(ports))
        memory.take("queues", CLASSES * len(ports))
        for field in ("first", "last", "ready_first", "ready_last"):
            memory["queues"][field] = NONE
        for number, port in enumerate(ports):
            record = memory["ports"][number]
            record["rate"], record["ends"], record["switch"], record["sending"] = port.rate, NEVER, port.switch, NONE
            for field in ("buffer", "drop_above", "mark_above"):
                record[field] = _whole(getattr(port, field))
        memory.take("switches", len(switches))
        memory["switches"]["buffer"][: len(switches)] = [_whole(size) for size in switches]
        self._pipes: dict[tuple[int, float], int] = {}
        """By first port and latency."""
        self._paths: dict[tuple[tuple[int, ...], ...], int] = {}
        """Where alternatives begin."""
        self._unused: list[int] = []
        """Numbers of messages."""
        self._is_raw: list[bool] = []
        """Of connections."""

    @property
    def _state(self) -> Any:
        return self._memory["state"][0]

    @property
    def now(self) -> float:
        """Seconds."""
        return float(self._state["now"])

    @property
    def is_moving(self) -> bool:
        """Whether any packet is on a wire that carries something, or on its way after that; or will be at once."""
        ports, pipes = self._memory["ports"], self._memory["pipes"]
        used = self._memory.used("ports"), self._memory.used("pipes")
        is_any = (ports["ends"][: used[0]] < NEVER).any() or (pipes["first"][: used[1]] != NONE).any()
        return bool(is_any or self._state["commands"])

    @property
    def is_quiet(self) -> bool:
        """Whether nothing will happen until something else is sent, or a port has another rate."""
        return not self._state["entries"] and not self._state["commands"]

    @property
    def hops(self) -> int:
        """Packets that ports have transmitted, acknowledgements too."""
        return int(self._state["hops"])

    def connect(
        self,
        paths: Sequence[Sequence[int]],
        ways_back: Sequence[Sequence[int]] = (),
        *,
        latency: float = 0.0,
        latency_back: float | None = None,
        loss: float = 0.0,
        loss_back: float = 0.0,
        priority: int = 0,
        endpoint: Endpoint = RELIABLY,
    ) -> int:
        """A connection over any of equally good `paths`, with its acknowledgements on `ways_back`; its number.

        All paths begin at one NIC. Latencies are seconds one way, by default the same back; losses the part of
        packets that vanish after the first port.
        """
        back = latency if latency_back is None else latency_back
        memory = self._memory
        number = memory.take("connections")
        record = memory["connections"][number]
        for field in ("pipe", "back_pipe", "first", "sending", "arriving", "newest", "next_ready"):
            record[field] = NONE
        for field in ("oldest", "latest", "lost_first", "lost_last"):
            record[field] = NONE
        record["priority"], record["nic"] = priority, paths[0][0]
        record["path"], record["paths"] = self._numbered(paths), len(paths)
        record["pipe"], record["loss"] = self._pipe(paths[0][0], latency), loss
        if ways_back:
            record["back"], record["backs"] = self._numbered(ways_back), len(ways_back)
            record["back_pipe"], record["back_loss"] = self._pipe(ways_back[0][0], back), loss_back
        record["deadline"] = record["timer"] = NEVER
        record["protected"], record["payload"], record["header"] = True, SEGMENT, HEADER
        self._is_raw.append(isinstance(endpoint, Raw))
        match endpoint:
            case Raw():
                record["kind"], record["payload"], record["header"] = RAW, endpoint.payload, endpoint.header
                record["protected"] = endpoint.protected
                return number
            case Reliable():
                record["kind"], record["timeout"] = RELIABLE, endpoint.least_timeout
                record["window"], record["most"] = endpoint.initial_window, endpoint.receive_window // SEGMENT
            case Pfabric():
                record["kind"], record["timeout"] = PFABRIC, endpoint.timeout
                record["window"], record["most"] = endpoint.window, _UNBOUNDED
            case Bounded():
                record["kind"], record["endpoint"] = BOUNDED, memory.take("senders")
                memory.take("receivers")
                sender, round_trip = memory["senders"][record["endpoint"] :], latency + back
                open_sender(sender[0], endpoint.initial_window, round_trip, endpoint.least_timeout)
                return number
        record["initial"], record["threshold"], record["alpha"] = record["window"], math.inf, 1.0
        record["highest"], record["reordering"] = NONE, 3
        record["round_trip"], record["deviation"] = latency + back, (latency + back) / 2
        record["slots"], record["room"] = memory.take("slots", _ROOM), _ROOM
        return number

    def send(self, connection: int, size: float) -> int:
        """Append a message of `size` bytes to what a connection has to send, now; the message's number.

        Numbers are used again once a message is acknowledged (or, of a raw connection, delivered).
        """
        message = self._unused.pop() if self._unused else self._memory.take("messages")
        whole = max(1, math.ceil(size))
        self._memory["messages"][message] = (whole, whole, 0, 0, NONE, connection)
        self._tell(SEND, connection, message)
        return message

    def send_cut(self, connection: int, cut: Cut, bound: Bound, *, header: int, stops_early: bool = True) -> int:
        """Send a message of which some may be missing, now, over a connection that has none under way; its number.

        `header` are the bytes of it that go ahead, with what announces it. It is delivered when little enough is
        missing, and sent and acknowledged when the sender knows that.
        """
        record = self._memory["connections"][connection]
        if record["first"] != NONE:
            raise ValueError(f"connection {connection} has a message under way")
        message = self.send(connection, int(cut.payloads.sum()))
        self._lay_out(record, cut, bound)
        record["first"], record["serial"] = message, record["serial"] + 1
        record["start_size"], record["stops_early"] = CONTROL_FRAME + header, stops_early
        return message

    def pieces(self, message: int) -> Pieces:
        """Of a message that was cut, as long as its connection has no other."""
        record = self._memory["connections"][self._memory["messages"]["connection"][message]]
        which = slice(int(record["pieces"]), int(record["pieces"] + record["count"]))
        there, tried, arrived = (self._memory[name][which].copy() for name in ("there", "tried", "arrived"))
        return Pieces(there, tried, arrived)

    def resize(self, port: int, rate: float) -> None:
        """From now on a port carries so many bytes per second; what is on its wire goes on with that."""
        self._tell(RESIZE, port, rate)

    def run(self, until: float = math.inf) -> list[Completion]:
        """Let all happen until that time, and tell what has become of messages, in order; with `until` infinite until
        nothing is left to happen."""
        told = []
        while True:
            news, is_up_to_date = self.step(until)
            told += news
            if is_up_to_date:
                return told

    def step(self, until: float) -> tuple[list[Completion], bool]:
        """As `run`, but only to the next time for which there is something to tell, or for a moment of wall time.

        Whether all has happened until then comes second.
        """
        memory = self._memory
        connections = memory.used("connections")
        memory.reserve("notes", 3 * memory.used("messages") + connections + SPARE)
        while True:
            entries = memory.used("ports") + memory.used("pipes") + connections
            memory.reserve("heap", int(self._state["entries"]) + entries + SPARE)
            if self._state["free"] < SPARE:
                self._more_packets()
            why = advance(memory.at, min(until, NEVER), _MOST_EVENTS)
            news = list(self._read_notes())
            if news or why != GROWS:
                return news, why == UP_TO_DATE

    def counters(self) -> npt.NDArray[Any]:
        """A record of each port since the start, [ports]: by class `carried` bytes, `dropped` and `marked` packets
        [CLASSES]; `packets` that have left; `queued`, the bytes that wait now, `most`, the most that did, and
        `byte_seconds`, their integral over time."""
        ports = self._memory["ports"][: self._memory.used("ports")]
        queues = self._memory["queues"][: self._memory.used("queues")].reshape(-1, CLASSES)
        counted = np.zeros(len(ports), COUNTERS)
        for field in ("carried", "dropped", "marked"):
            counted[field] = queues[field]
        for field in ("packets", "queued", "most"):
            counted[field] = ports[field]
        counted["byte_seconds"] = ports["byte_seconds"] + ports["queued"] * (self.now - ports["changed"])
        return counted

    def unsent(self, message: int) -> int:
        """Bytes of a message that were never sent."""
        return int(self._memory["messages"]["left"][message])

    def resent(self, message: int) -> int:
        """Bytes of a message that were sent again."""
        return int(self._memory["messages"]["resent"][message])

    def _tell(self, what: int, of: int, value: float = 0.0) -> None:
        """Have the loop do that before anything else."""
        place = int(self._state["commands"])
        self._memory.reserve("commands", place + 1)
        self._memory["commands"][place] = (value, what, of)
        self._state["commands"] = place + 1

    def _read_notes(self) -> Iterator[Completion]:
        told, self._state["told"] = int(self._state["told"]), 0
        for time, what, number in self._memory["notes"][:told].tolist():
            if what == WANTS_ROOM:
                self._more_room(number)
                continue
            connection = self._memory["messages"]["connection"][number]
            if what == (DELIVERED if self._is_raw[connection] else ACKNOWLEDGED):
                self._unused.append(number)
            yield Completion(_WHAT[what], number, time)

    def _lay_out(self, record: Any, cut: Cut, bound: Bound) -> None:
        """Put a message's pieces where compiled code finds them."""
        count, groups = len(cut.payloads), len(bound.allowed)
        memory = self._memory
        if count > record["count_room"]:
            record["pieces"], record["count_room"] = memory.take("known", count), count
            for name in PIECES:
                memory.reserve(name, memory.used("known"))
        if groups > record["group_room"]:
            record["groups"], record["group_room"] = memory.take("missing", groups), groups
            memory.reserve("allowed", memory.used("missing"))
        record["count"], record["group_count"] = count, groups
        first, first_group = int(record["pieces"]), int(record["groups"])
        given = {"shielded": cut.protected, "urgency": cut.priority, "order": cut.order, "sizes": cut.payloads}
        for name, values in {**given, "group": bound.group}.items():
            memory[name][first : first + count] = values
        for name in ("known", "there", "mapped", "tried"):
            memory[name][first : first + count] = 0
        memory["arrived"][first : first + count] = np.nan
        memory["allowed"][first_group : first_group + groups] = bound.allowed

    def _numbered(self, paths: Sequence[Sequence[int]]) -> int:
        """Where these alternatives begin among the paths."""
        key = tuple(map(tuple, paths))
        if key not in self._paths:
            first = self._memory.take("paths", len(paths))
            for number, path in enumerate(paths, first):
                if not 0 < len(path) <= LONGEST_PATH:
                    raise ValueError(f"a path has 1 to {LONGEST_PATH} ports, not {len(path)}")
                self._memory["paths"][number, : len(path)] = path
            self._paths[key] = first
        return self._paths[key]

    def _pipe(self, port: int, latency: float) -> int:
        """What leaves a host's port for a latency; NONE where that is 0."""
        if not latency:
            return NONE
        if (port, latency) not in self._pipes:
            number = self._pipes[port, latency] = self._memory.take("pipes")
            self._memory["pipes"][number] = (latency, NONE, NONE)
        return self._pipes[port, latency]

    def _more_packets(self) -> None:
        had = self._memory.used("packets")
        more = max(1024, had)
        self._memory.take("packets", more)
        chain = np.arange(had + 1, had + more + 1)
        chain[-1] = self._state["next_free"]
        self._memory["packets"]["next"][had : had + more] = chain
        self._state["next_free"] = had
        self._state["free"] += more

    def _more_room(self, connection: int) -> None:
        """Let a connection keep account of twice as many segments."""
        record = self._memory["connections"][connection]
        old, room = int(record["slots"]), int(record["room"])
        new = self._memory.take("slots", 2 * room)
        segments = np.arange(record["acknowledged"], record["next"])
        slots = self._memory["slots"]
        slots[new + (segments & (2 * room - 1))] = slots[old + (segments & (room - 1))]
        record["slots"], record["room"] = new, 2 * room
        self._tell(WAKE, connection)


COUNTERS = np.dtype(
    [
        *((name, np.int64, (CLASSES,)) for name in ("carried", "dropped", "marked")),
        *((name, np.int64) for name in ("packets", "queued", "most")),
        ("byte_seconds", np.float64),
    ]
)


def _whole(size: float) -> int:
    return _UNBOUNDED if size >= _UNBOUNDED else int(size)
