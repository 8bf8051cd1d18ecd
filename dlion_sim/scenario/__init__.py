"""The keys of a scenario's YAML as checked, immutable data: human units in the file, SI units in the code."""

from dlion_sim.scenario.capacity import UNLIMITED
from dlion_sim.scenario.catalog import CATALOGS, Catalog
from dlion_sim.scenario.cluster import Cluster, Fabric, Lan, WorkerPlace
from dlion_sim.scenario.devices import CORE_FLOPS, DEVICES
from dlion_sim.scenario.loading import dump, from_data, load, to_data
from dlion_sim.scenario.machines import Compute, WorkerGroup
from dlion_sim.scenario.network import Flows, Lv08, Network, NoTcp, Packets, Windows
from dlion_sim.scenario.parametrised import Lora, named
from dlion_sim.scenario.partition import Dirichlet, Iid, LabelShards, Owners
from dlion_sim.scenario.scenario import Scenario, tariff
from dlion_sim.scenario.schedule import Schedule
from dlion_sim.scenario.shipped import find, find_sweep, shipped
from dlion_sim.scenario.stream import Brightness, LabelShift, LateClass, Rotation, Stream
from dlion_sim.scenario.system import ChoiceSpec, SystemSpec
from dlion_sim.scenario.transport import Dlcp, LossPhase, Pfabric, Reliable, StageBounds, Transport
from dlion_sim.scenario.units import BANDWIDTH, CORES, DURATION, QUEUE, SIZE, Unit
from dlion_sim.scenario.wan import Wan
from dlion_sim.scenario.workload import ComputeTime, Input, Workload
