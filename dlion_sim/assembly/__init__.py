"""Who takes part in a run, what they compute on and what they measure: the same in virtual and in real time."""

from dlion_sim.assembly.compute import ComputeDevice
from dlion_sim.assembly.input_pipeline import InputPipeline, Stall
from dlion_sim.assembly.manifest_fields import manifest_fields
from dlion_sim.assembly.outages import Outage, Outages
from dlion_sim.assembly.recording import Recorder
from dlion_sim.assembly.sampling import StreamSampler
from dlion_sim.assembly.server_placement import server_hosts
from dlion_sim.assembly.setting import Setting
from dlion_sim.assembly.transfer import Loss, Part, Transfer

__all__ = [
    "ComputeDevice",
    "InputPipeline",
    "Loss",
    "Outage",
    "Outages",
    "Part",
    "Recorder",
    "Setting",
    "Stall",
    "StreamSampler",
    "Transfer",
    "manifest_fields",
    "server_hosts",
]
