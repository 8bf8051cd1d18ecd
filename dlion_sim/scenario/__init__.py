"""The keys of a scenario's YAML as checked, immutable data: human units in the file, SI units in the code."""

from dlion_sim.scenario.capacity import UNLIMITED
from dlion_sim.scenario.catalog import CATALOGS, Catalog
from dlion_sim.scenario.cluster import Cloud, Cluster, Fabric, Lan, WorkerPlace
from dlion_sim.scenario.devices import CORE_FLOPS, DEVICES, Device
from dlion_sim.scenario.loading import dump, from_data, load, to_data
from dlion_sim.scenario.machines import Compute, Nic, WorkerGroup
from dlion_sim.scenario.network import Flows, Lv08, Network, NoTcp, Packets, Windows
from dlion_sim.scenario.parametrised import Gpt, Lora, Shakespeare, named
from dlion_sim.scenario.partition import Dirichlet, Iid, LabelShards, Owners, Partition, Shared
from dlion_sim.scenario.prices import Billing, Prices
from dlion_sim.scenario.scenario import Scenario, tariff
from dlion_sim.scenario.schedule import Schedule
from dlion_sim.scenario.shipped import find, find_sweep, shipped
from dlion_sim.scenario.stream import Brightness, LabelShift, LateClass, Rotation, Stream
from dlion_sim.scenario.system import ChoiceSpec, SystemSpec
from dlion_sim.scenario.transport import Dlcp, LossPhase, Pfabric, Reliable, StageBounds, Transport
from dlion_sim.scenario.units import BANDWIDTH, CORES, DURATION, QUEUE, SIZE, Unit
from dlion_sim.scenario.wan import Wan, WanPath
from dlion_sim.scenario.workload import ComputeTime, CostAs, Input, Optimizer, Workload

__all__ = [
    "BANDWIDTH",
    "CATALOGS",
    "CORES",
    "CORE_FLOPS",
    "DEVICES",
    "DURATION",
    "QUEUE",
    "SIZE",
    "UNLIMITED",
    "Billing",
    "Brightness",
    "Catalog",
    "ChoiceSpec",
    "Cloud",
    "Cluster",
    "Compute",
    "ComputeTime",
    "CostAs",
    "Device",
    "Dirichlet",
    "Dlcp",
    "Fabric",
    "Flows",
    "Gpt",
    "Iid",
    "Input",
    "LabelShards",
    "LabelShift",
    "Lan",
    "LateClass",
    "Lora",
    "LossPhase",
    "Lv08",
    "Network",
    "Nic",
    "NoTcp",
    "Optimizer",
    "Owners",
    "Packets",
    "Partition",
    "Pfabric",
    "Prices",
    "Reliable",
    "Rotation",
    "Scenario",
    "Schedule",
    "Shakespeare",
    "Shared",
    "StageBounds",
    "Stream",
    "SystemSpec",
    "Transport",
    "Unit",
    "Wan",
    "WanPath",
    "Windows",
    "WorkerGroup",
    "WorkerPlace",
    "Workload",
    "dump",
    "find",
    "find_sweep",
    "from_data",
    "load",
    "named",
    "shipped",
    "tariff",
    "to_data",
]
