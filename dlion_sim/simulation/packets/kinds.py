"""What a checkpoint of a simulation of packets may hold beside everything else."""

from __future__ import annotations

from dlion_sim.scenario import Packets, Pfabric, Reliable
from dlion_sim.simulation.packets.memory import Memory
from dlion_sim.simulation.packets.network import PacketNetwork
from dlion_sim.simulation.packets.transport import PacketTransport

CLASSES: tuple[type, ...] = (Memory, PacketNetwork, PacketTransport, Packets, Pfabric, Reliable)
METHODS: frozenset[object] = frozenset(
    {
        *(PacketTransport._ask_to_go_on, PacketTransport._go_on, PacketTransport._pass, PacketTransport._resize),
        PacketTransport._tell,
    }
)
