"""From a scenario's links to ports, with its queues."""

from __future__ import annotations

from dlion_sim.scenario import Packets
from dlion_sim.simulation.packets.parts import Port
from dlion_sim.simulation.packets.state import NONE
from dlion_sim.simulation.routing import BITS_PER_BYTE, Routing


def ports_of(routing: Routing, model: Packets) -> tuple[list[Port], list[float]]:
    """The port of each link by its number, and the bytes of buffers that some of them share."""
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
