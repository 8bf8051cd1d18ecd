"""What a checkpoint of a simulation of packets may hold beside everything else."""

from __future__ import annotations

from dlion_sim.bounded_loss.assembling import Assembler
from dlion_sim.bounded_loss.bounds import Bounds
from dlion_sim.bounded_loss.cutting import Cut, Cutter, Variables
from dlion_sim.scenario import Dlcp, LossPhase, Packets, Pfabric, Reliable, StageBounds
from dlion_sim.simulation.packets.delivery import PacketDelivery
from dlion_sim.simulation.packets.lossy import LossyMessages
from dlion_sim.simulation.packets.memory import Memory
from dlion_sim.simulation.packets.network import PacketNetwork
from dlion_sim.simulation.packets.queues import Queues
from dlion_sim.simulation.packets.ways import Ways

CLASSES: tuple[type, ...] = (
    *(Memory, PacketNetwork, PacketDelivery, Queues, Ways),
    *(Assembler, Bounds, Cut, Cutter, LossyMessages, Variables),
    *(Dlcp, LossPhase, Packets, Pfabric, Reliable, StageBounds),
)
METHODS: frozenset[object] = frozenset(
    {
        *(PacketDelivery._ask_to_go_on, PacketDelivery._go_on, PacketDelivery._pass, PacketDelivery._resize),
        PacketDelivery._tell,
    }
)
