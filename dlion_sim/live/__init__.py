"""The wall-clock driver: real nodes that train over TCP."""

from dlion_sim.live.churn import Churn
from dlion_sim.live.clock import Clock
from dlion_sim.live.coordinate import announced, run_locally
from dlion_sim.live.gathering import gather
from dlion_sim.live.member import check_live
from dlion_sim.live.node import run_node
from dlion_sim.live.node_config import LEFT, MeshConfig, NodeConfig
from dlion_sim.live.nodes import Nodes, Places, Spot, on_loopback
from dlion_sim.live.run_nodes import RunNodes
from dlion_sim.live.secret import read_secret
from dlion_sim.live.sockets import Address
from dlion_sim.live.timeouts import DEFAULT_TIMEOUTS, Timeouts
from dlion_sim.live.timetable import Timetable

__all__ = [
    "DEFAULT_TIMEOUTS",
    "LEFT",
    "Address",
    "Churn",
    "Clock",
    "MeshConfig",
    "NodeConfig",
    "Nodes",
    "Places",
    "RunNodes",
    "Spot",
    "Timeouts",
    "Timetable",
    "announced",
    "check_live",
    "gather",
    "on_loopback",
    "read_secret",
    "run_locally",
    "run_node",
]
