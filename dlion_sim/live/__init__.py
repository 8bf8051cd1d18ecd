"""The wall-clock driver: real nodes that train over TCP."""

from dlion_sim.live.coordinate import run_locally
from dlion_sim.live.gathering import gather
from dlion_sim.live.node import run_node
from dlion_sim.live.patience import Patience
from dlion_sim.live.place import Place
from dlion_sim.live.secret import read_secret
from dlion_sim.live.sockets import Address

__all__ = ["Address", "Patience", "Place", "gather", "read_secret", "run_locally", "run_node"]
