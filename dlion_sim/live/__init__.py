"""Live runs: processes that train together over TLS, in real time."""

from dlion_sim.live.churn import Churn
from dlion_sim.live.connection import Address
from dlion_sim.live.coordinate import announced, run_locally
from dlion_sim.live.driver import NobodyReachedError
from dlion_sim.live.gathering import gather, part_folder
from dlion_sim.live.identity import Identity
from dlion_sim.live.member import check_live
from dlion_sim.live.node import run_node
from dlion_sim.live.node_config import BEGUN, LEFT, STANDS_BY, MeshConfig, NodeConfig, Timeouts, status_line
from dlion_sim.live.nodes import Nodes, Spot, on_loopback
from dlion_sim.live.private_file import read_secret
from dlion_sim.live.run_nodes import RunNodes
from dlion_sim.live.timetable import Clock, Timetable
