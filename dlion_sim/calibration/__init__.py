"""Measuring machines and networks, for a scenario."""

from dlion_sim.calibration.fit import fit
from dlion_sim.calibration.machine import Calibration, calibrate
from dlion_sim.calibration.mesh import Outcome, measure_mesh
from dlion_sim.calibration.network import block_of, check_names, csv, matrices, network_block
from dlion_sim.calibration.nodes import measure_by_processes
from dlion_sim.calibration.own_scenario import own_scenario
from dlion_sim.calibration.probe import PathFound
from dlion_sim.calibration.turns import Pair
