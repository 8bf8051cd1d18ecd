"""A packet-level network in virtual time, usable by itself: ports, connections over them, and messages.

A path is a tuple of ports, from the sender's NIC to the receiver's. The first port of a path is a host's own: no queue,
but whenever it is free it pulls a packet of those connections that may send, the most urgent class first, in turn among
equals. Every other port has a queue. A connection's latency passes after its first port.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dlion_sim.bounded_loss.bounds import Bound
from dlion_sim.bounded_loss.cutting import Cut
from dlion_sim.simulation.packets.bounded import CONTROL_FRAME
from dlion_sim.simulation.packets.checking import check
from dlion_sim.simulation.packets.loop import GROWS, SPARE, UP_TO_DATE, advance
from dlion_sim.simulation.packets.memory import Memory
from dlion_sim.simulation.packets.opening import IDLE, lay_out, open_endpoint, open_ports
from dlion_sim.simulation.packets.parts import (
    Acknowledged,
    Bounded,
    Completion,
    Endpoint,
    Pfabric,
    Pieces,
    Port,
    Raw,
    Reliable,
)
from dlion_sim.simulation.packets.state import (
    CLASSES,
    LONGEST_PATH,
    NEVER,
    NONE,
    RESIZE,
    SEND,
    WAKE,
    WANTS_ROOM,
)

__all__ = ["CLASSES", "Bounded", "Completion", "PacketNetwork", "Pfabric", "Port", "Raw", "Reliable"]

RELIABLY = Reliable()
_COUNTERS = np.dtype(
    [
        *((name, np.int64, (CLASSES,)) for name in ("carried", "dropped", "marked")),
        *((name, np.int64) for name in ("packets", "queued", "most")),
        ("byte_seconds", np.float64),
    ]
)
_MOST_EVENTS = 200_000
"""Events between two returns to Python, where a run can be interrupted."""
_WHAT: tuple[Literal["sent", "delivered", "acknowledged"], ...] = ("sent", "delivered", "acknowledged")


class PacketNetwork:
    """Ports by number, connections over them, and messages.

    `switches` are the bytes of buffers that ports share. With `spray` each packet takes the next one of its
    connection's paths in turn, otherwise all take the first. With `by_size` queues send first, and drop last, what has
    least left of its message (pFabric); with `fair` each connection has a queue of its own at every port, which has the
    port's buffer and thresholds, and they are served in turn. Random losses come from `seed`.
    """

    def __init__(
        self,
        ports: Sequence[Port],
        *,
        switches: Sequence[float] = (),
        spray: bool = False,
        by_size: bool = False,
        fair: bool = False,
        seed: int = 0,
    ) -> None:
        self._memory = memory = Memory()
        memory.take("state")
        for name, value in {"spray": spray, "by_size": by_size, "fair": fair, "seed": seed}.items():
            self._state[name] = value
        self._state["next_free"] = NONE
        open_ports(memory, ports, switches)
        self._pipes: dict[tuple[int, float], int] = {}
        """Pipes by first port and latency."""
        self._paths: dict[tuple[tuple[int, ...], ...], int] = {}
        """The first of each set of alternative paths."""
        self._unused: list[int] = []
        """Unused numbers of messages."""

    @property
    def _state(self) -> Any:
        return self._memory["state"][0]

    @property
    def now(self) -> float:
        """Seconds."""
        return float(self._state["now"])

    @property
    def is_moving(self) -> bool:
        """Whether any packet is on a wire that is up or in a pipe, or will be at once."""
        ports, pipes = self._memory["ports"], self._memory["pipes"]
        used = self._memory.used("ports"), self._memory.used("pipes")
        is_any = (ports["ends"][: used[0]] < NEVER).any() or (pipes["first"][: used[1]] != NONE).any()
        return bool(is_any or self._state["commands"])

    @property
    def is_quiet(self) -> bool:
        """Whether there will be no event until a message is sent or a rate changes."""
        return not self._state["entries"] and not self._state["commands"]

    @property
    def hops(self) -> int:
        return int(self._state["hops"])

    def connect(
        self,
        paths: Sequence[Sequence[int]],
        return_routes: Sequence[Sequence[int]] = (),
        *,
        latency: float = 0.0,
        latency_back: float | None = None,
        loss: float = 0.0,
        loss_back: float = 0.0,
        priority: int = 0,
        endpoint: Endpoint = RELIABLY,
    ) -> int:
        """A connection over any of equally good `paths`, with its acknowledgements on `return_routes`; its number.

        All paths begin at one NIC. Latencies are seconds one way, by default the same back; losses the part of
        packets that vanish after the first port.
        """
        back = latency if latency_back is None else latency_back
        memory, nic = self._memory, paths[0][0]
        number = memory.take("connections")
        memory["connections"][number] = IDLE
        record = memory["connections"][number]
        record["priority"], record["nic"] = priority, nic
        record["path"], record["paths"] = self._numbered(paths), len(paths)
        record["pipe"], record["loss"] = self._pipe(nic, latency), loss
        if return_routes:
            record["back"], record["backs"] = self._numbered(return_routes), len(return_routes)
            record["back_pipe"], record["back_loss"] = self._pipe(return_routes[0][0], back), loss_back
        open_endpoint(memory, number, endpoint, latency + back)
        return number

    def send(self, connection: int, size: float) -> int:
        """Send a message of `size` bytes after the connection's earlier ones; its number, until it is released."""
        if connection not in range(self._memory.used("connections")):
            raise ValueError(f"there is no connection {connection}")
        message = self._unused.pop() if self._unused else self._memory.take("messages")
        whole = max(1, math.ceil(size))
        self._memory["messages"][message] = (whole, whole, 0, 0, 0.0, 0, 0.0, 0, NONE, connection)
        self._command(SEND, connection, message)
        return message

    def send_cut(self, connection: int, cut: Cut, bound: Bound, *, header: int, stops_early: bool = True) -> int:
        """Send a message of which a part may be missing, over a connection that has none under way; its number.

        `header` are the bytes of it that go ahead, with what announces it. It is delivered when little enough is
        missing, and sent and acknowledged when the sender knows that.
        """
        record = self._memory["connections"][connection]
        if record["first"] != NONE:
            raise ValueError(f"connection {connection} has a message under way")
        message = self.send(connection, int(cut.payloads.sum()))
        lay_out(self._memory, connection, cut, bound)
        record["first"], record["serial"] = message, record["serial"] + 1
        record["start_size"], record["stops_early"] = CONTROL_FRAME + header, stops_early
        return message

    def pieces(self, message: int) -> Pieces:
        """The pieces of a message that was cut, while its connection has no other one."""
        record = self._memory["connections"][self._memory["messages"]["connection"][message]]
        which = slice(int(record["pieces"]), int(record["pieces"] + record["count"]))
        there, tried, arrived = (self._memory[name][which].copy() for name in ("there", "tried", "arrived"))
        return Pieces(there, tried, arrived)

    def release(self, message: int) -> None:
        """Forget a message that is acknowledged, or delivered by a raw connection; its number is reused."""
        self._unused.append(message)

    def resize(self, port: int, rate: float) -> None:
        """Set the rate of a port (bytes per second), also for the packet on its wire."""
        if port not in range(self._memory.used("ports")) or not rate >= 0:
            raise ValueError(f"there is no port {port} with {rate} bytes per second")
        self._command(RESIZE, port, rate)

    def run(self, until: float = math.inf) -> list[Completion]:
        """Advance to a time, and return the events of messages, in order; if infinite, until there are no more."""
        completions = []
        while True:
            more, is_up_to_date = self.step(until)
            completions += more
            if is_up_to_date:
                return completions

    def step(self, until: float) -> tuple[list[Completion], bool]:
        """As `run`, but only to the next event of a message, or for a moment of wall time.

        The second value says whether `until` was reached.
        """
        memory = self._memory
        connections = memory.used("connections")
        memory.reserve("notes", 3 * memory.used("messages") + connections + SPARE)
        while True:
            entries = memory.used("ports") + memory.used("pipes") + connections
            memory.reserve("heap", int(self._state["entries"]) + entries + SPARE)
            if self._state["free"] < SPARE:
                self._memory.more_packets()
            why = advance(memory.at, min(until, NEVER), _MOST_EVENTS)
            completions = list(self._read_notes())
            if completions or why != GROWS:
                return completions, why == UP_TO_DATE

    def counters(self) -> npt.NDArray[Any]:
        """A record of each port since the start, [ports]: by class `carried` bytes, `dropped` and `marked` packets
        [CLASSES]; `packets` that have left; `queued`, the bytes that wait now, `most`, the most that did, and
        `byte_seconds`, their integral over time."""
        ports = self._memory["ports"][: self._memory.used("ports")]
        queues = self._memory["queues"][: self._memory.used("queues")].reshape(-1, CLASSES)
        counted = np.zeros(len(ports), _COUNTERS)
        for field in ("carried", "dropped", "marked"):
            counted[field] = queues[field]
        for field in ("packets", "queued", "most"):
            counted[field] = ports[field]
        counted["byte_seconds"] = ports["byte_seconds"] + ports["queued"] * (self.now - ports["changed"])
        return counted

    def forget_most(self) -> None:
        """Restart the maxima `most` from the present queues."""
        ports = self._memory["ports"]
        ports["most"] = ports["queued"]

    def unsent(self, message: int) -> int:
        return int(self._memory["messages"]["left"][message])

    def acknowledged(self, message: int) -> tuple[Acknowledged, Acknowledged]:
        """The first acknowledgement of a message that was not cut, and that of nearly all its bytes."""
        record = self._memory["messages"][message]
        first = Acknowledged(float(record["first_known_at"]), int(record["first_known"]))
        return first, Acknowledged(float(record["nearly_known_at"]), max(1, int(record["nearly_known"])))

    def resent(self, message: int) -> int:
        return int(self._memory["messages"]["resent"][message])

    def check_restored(self) -> None:
        """Raise ValueError for a state of a checkpoint with indices out of bounds."""
        memory = self._memory
        if not isinstance(memory, Memory) or memory.used("state") != 1:
            raise ValueError("a network has no memory")
        check(memory)
        numbers = (self._unused, "messages"), (self._pipes.values(), "pipes"), (self._paths.values(), "paths")
        if not all(each in range(memory.used(name)) for given, name in numbers for each in given):
            raise ValueError("indices of packets are out of bounds")

    def fits(self, ports: int, messages: Iterable[int]) -> bool:
        """Whether it has so many ports, and these messages."""
        used = self._memory.used
        return used("ports") == ports and all(each in range(used("messages")) for each in messages)

    def _command(self, what: int, of: int, value: float = 0.0) -> None:
        """Add a command, which the loop carries out first."""
        place = int(self._state["commands"])
        self._memory.reserve("commands", place + 1)
        self._memory["commands"][place] = (value, what, of)
        self._state["commands"] = place + 1

    def _read_notes(self) -> Iterator[Completion]:
        noted, self._state["noted"] = int(self._state["noted"]), 0
        for time, what, number in self._memory["notes"][:noted].tolist():
            if what == WANTS_ROOM:
                self._memory.more_segments(number)
                self._command(WAKE, number)
                continue
            yield Completion(_WHAT[what], number, time)

    def _numbered(self, paths: Sequence[Sequence[int]]) -> int:
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
        """The pipe of a host's port with a latency; NONE if that is 0."""
        if not latency:
            return NONE
        if (port, latency) not in self._pipes:
            number = self._pipes[port, latency] = self._memory.take("pipes")
            self._memory["pipes"][number] = (latency, NONE, NONE)
        return self._pipes[port, latency]
