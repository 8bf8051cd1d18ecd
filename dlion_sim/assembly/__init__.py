"""Who takes part in a run, what they compute on and what they measure: the same in virtual and in real time."""

from dlion_sim.assembly.compute import ComputeDevice
from dlion_sim.assembly.facts import facts_of
from dlion_sim.assembly.feeding import InputPipeline, Stall
from dlion_sim.assembly.hosts import server_hosts
from dlion_sim.assembly.outages import Outage, Outages
from dlion_sim.assembly.recording import Recorder
from dlion_sim.assembly.sampling import StreamSampler
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
    "facts_of",
    "server_hosts",
]
