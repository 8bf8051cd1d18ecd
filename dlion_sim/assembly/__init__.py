"""A run's participants, machines, data and recorder: the same in virtual and in real time."""

from dlion_sim.assembly.arrivals import StreamSampler
from dlion_sim.assembly.compute import ComputeDevice, InputPipeline, Stall
from dlion_sim.assembly.manifest_fields import manifest_fields
from dlion_sim.assembly.outages import Outage, Outages
from dlion_sim.assembly.recording import Recorder
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
