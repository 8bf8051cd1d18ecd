"""The packet-level network in virtual time: ports with queues, and endpoints with congestion control."""

from dlion_sim.simulation.packets.delivery import PacketDelivery, packet_delivery

__all__ = ["PacketDelivery", "packet_delivery"]
