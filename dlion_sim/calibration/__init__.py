"""A scenario's figures of one's own machines and network, from what was measured there."""

from dlion_sim.calibration.fit import Fit, fit
from dlion_sim.calibration.machine import Calibration, calibrate
from dlion_sim.calibration.network import network_block

__all__ = ["Calibration", "Fit", "calibrate", "fit", "network_block"]
