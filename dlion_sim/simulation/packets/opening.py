"""The initial records of ports, connections, and messages of which a part may be missing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dlion_sim.bounded_loss.bounds import Bound
from dlion_sim.bounded_loss.cutting import Cut
from dlion_sim.bounded_loss.dlcp import open_sender
from dlion_sim.scenario import Packets
from dlion_sim.scenario.network import SEGMENT
from dlion_sim.simulation.packets.memory import Memory
from dlion_sim.simulation.packets.parts import Bounded, Endpoint, Pfabric, Port, Raw, Reliable
from dlion_sim.simulation.packets.state import (
    BOUNDED,
    CLASSES,
    CONNECTION,
    HEADER,
    NEVER,
    NONE,
    PFABRIC,
    RAW,
    RELIABLE,
)
from dlion_sim.simulation.routing import BITS_PER_BYTE, Routing

_ROOM = 32
"""The initial room of a connection for segments."""
_REORDERING = 3
"""Later transmissions that arrive before one is considered lost (RFC 5681)."""
_UNBOUNDED = 2**62


def _idle() -> Any:
    """A connection with nothing to send."""
    record = np.zeros(1, CONNECTION)[0]
    for field in (
        *("pipe", "back_pipe", "next_ready", "first", "sending", "arriving", "newest"),
        *("oldest", "latest", "lost_first", "lost_last", "highest", "probe"),
    ):
        record[field] = NONE
    record["deadline"] = record["timer"] = NEVER
    record["protected"], record["payload"], record["header"] = True, SEGMENT, HEADER
    return record


IDLE = _idle()


def ports_of(routing: Routing, model: Packets) -> tuple[list[Port], list[float]]:
    """The port of each link, and the sizes of shared buffers in bytes."""
    switches = routing.switches if model.shared_buffer else ()
    switch_of = {link: number for number, links in enumerate(switches) for link in links}
    ports = []
    for link, capacity_bps in enumerate(routing.capacities_bps):
        port = Port(capacity_bps.value_at(0) / BITS_PER_BYTE, burst=model.burst)
        if link not in routing.uplinks:  # a machine's own NIC, which has no queue
            limits = model.buffer, model.drop_above, model.mark_above
            port = Port(port.rate, *limits, model.burst, switch_of.get(link, NONE))
        ports.append(port)
    return ports, [model.buffer] * len(switches)


def open_ports(memory: Memory, ports: Sequence[Port], switches: Sequence[float]) -> None:
    """Create ports with empty queues, and shared buffers."""
    memory.take("ports", len(ports))
    memory.take("queues", CLASSES * len(ports))
    for field in ("first", "last", "ready_first", "ready_last"):
        memory["queues"][field] = NONE
    for record, port in zip(memory["ports"], ports, strict=False):
        record["rate"], record["ends"], record["switch"], record["sending"] = port.rate, NEVER, port.switch, NONE
        record["free"] = -math.inf
        for field in ("buffer", "drop_above", "mark_above", "burst"):
            record[field] = _whole(getattr(port, field))
    memory.take("switches", len(switches))
    memory["switches"]["buffer"][: len(switches)] = [_whole(size) for size in switches]


def open_endpoint(memory: Memory, connection: int, endpoint: Endpoint, round_trip: float) -> None:
    """Set the endpoint of a connection, with its round trip (s)."""
    record = memory["connections"][connection]
    match endpoint:
        case Raw():
            record["kind"], record["payload"], record["header"] = RAW, endpoint.payload, endpoint.header
            record["protected"] = endpoint.protected
        case Bounded():
            record["kind"], record["endpoint"] = BOUNDED, memory.take("senders")
            memory.take("receivers")
            sender = memory["senders"][record["endpoint"]]
            open_sender(sender, endpoint.initial_window, round_trip, endpoint.least_timeout)
        case Reliable():
            record["kind"], record["timeout"] = RELIABLE, endpoint.least_timeout
            record["window"], record["most"] = endpoint.initial_window, endpoint.receive_window // SEGMENT
            record["linux"] = endpoint.linux
        case Pfabric():
            record["kind"], record["timeout"] = PFABRIC, endpoint.timeout
            record["window"], record["most"] = endpoint.window, _UNBOUNDED
    if isinstance(endpoint, Reliable | Pfabric):
        record["initial"], record["threshold"], record["alpha"] = record["window"], math.inf, 1.0
        record["round_trip"], record["deviation"] = round_trip, round_trip / 2
        record["reordering"] = _REORDERING
        record["slots"], record["room"] = memory.take("slots", _ROOM), _ROOM


def lay_out(memory: Memory, connection: int, cut: Cut, bound: Bound) -> None:
    """Store a message's pieces in the arrays of compiled code."""
    memory.room_for_pieces(connection, len(cut.payloads), len(bound.allowed))
    record = memory["connections"][connection]
    pieces = slice(int(record["pieces"]), int(record["pieces"] + record["count"]))
    groups = slice(int(record["groups"]), int(record["groups"] + record["group_count"]))
    given = {"shielded": cut.protected, "urgency": cut.priority, "order": cut.order, "sizes": cut.payloads}
    for name, values in {**given, "group": bound.group}.items():
        memory[name][pieces] = values
    for name in ("known", "there", "mapped", "tried"):
        memory[name][pieces] = 0
    memory["arrived"][pieces] = np.nan
    memory["allowed"][groups] = bound.allowed


def _whole(size: float) -> int:
    return _UNBOUNDED if size >= _UNBOUNDED else int(size)
