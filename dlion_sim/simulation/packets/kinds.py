"""What a checkpoint of a simulation of packets may hold beside everything else."""

from __future__ import annotations

from dlion_sim.scenario import Dlcp, LossPhase, Packets, Pfabric, Reliable, StageBounds
from dlion_sim.simulation.packets.lossy import LossyMessages
from dlion_sim.simulation.packets.memory import Memory
from dlion_sim.simulation.packets.network import PacketNetwork
from dlion_sim.simulation.packets.queues import Queues
from dlion_sim.simulation.packets.transport import PacketTransport
from dlion_sim.simulation.packets.ways import Ways
from dlion_sim.transport.assembling import Assembler
from dlion_sim.transport.bounds import Bounds
from dlion_sim.transport.cutting import Cut, Cutter, Variables

CLASSES: tuple[type, ...] = (
    *(Memory, PacketNetwork, PacketTransport, Queues, Ways),
    *(Assembler, Bounds, Cut, Cutter, LossyMessages, Variables),
    *(Dlcp, LossPhase, Packets, Pfabric, Reliable, StageBounds),
)
METHODS: frozenset[object] = frozenset(
    {
        *(PacketTransport._ask_to_go_on, PacketTransport._go_on, PacketTransport._pass, PacketTransport._resize),
        PacketTransport._tell,
    }
)
