"""Measuring machines and networks, for a scenario."""

from dlion_sim.calibration.machine import Calibration, calibrate, fit
from dlion_sim.calibration.mesh import Outcome, measure_by_processes, measure_mesh
from dlion_sim.calibration.network import block_of, check_names, csv, matrices, network_block, network_of
from dlion_sim.calibration.own_scenario import own_scenario
from dlion_sim.calibration.probe import PathFound
from dlion_sim.calibration.prober import Pair
