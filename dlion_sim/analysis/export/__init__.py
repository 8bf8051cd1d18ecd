"""Runs in the formats of other tools."""

from dlion_sim.analysis.export.event_files import export_tensorboard
from dlion_sim.analysis.export.tables import export_csv
from dlion_sim.analysis.export.trace import export_trace

__all__ = ["export_csv", "export_tensorboard", "export_trace"]
