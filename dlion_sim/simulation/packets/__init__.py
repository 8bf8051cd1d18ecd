"""The packet-level network in virtual time: ports with queues, and endpoints that share them by what comes back."""

from dlion_sim.simulation.packets.transport import PacketTransport, packet_transport

__all__ = ["PacketTransport", "packet_transport"]
