"""What a checkpoint may hold: classes that are nothing but state, and the methods that may be planned with it."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from enum import Enum
from types import FunctionType, MethodType
from typing import Any

import msgspec

from dlion_sim.assembly import ComputeDevice, InputPipeline, Recorder, Stall, StreamSampler
from dlion_sim.assembly.arrivals import Arrivals
from dlion_sim.assembly.availability_totals import AvailabilityTotals
from dlion_sim.assembly.outages import Outage
from dlion_sim.assembly.packet_losses import PacketLosses
from dlion_sim.assembly.recording import LinkInterval
from dlion_sim.assembly.stream_totals import Streamed
from dlion_sim.assembly.totals import Totals
from dlion_sim.assembly.transfer import Loss, Part, Transfer
from dlion_sim.learning import BatchSampler, Layout, Newest, Replica, Reservoir, Ticket
from dlion_sim.learning.optimizer import Adam, Clipped, Sgd
from dlion_sim.learning.replica import State
from dlion_sim.protocol.barrier import Barrier
from dlion_sim.protocol.batching.global_batch import GlobalBatchSchedule
from dlion_sim.protocol.batching.profile import CostFit, CostModel
from dlion_sim.protocol.choices import Choices, Merge, Peer, Setup
from dlion_sim.protocol.events import GradientReady, ProfileReady
from dlion_sim.protocol.exchange.ring_sum import RingSum
from dlion_sim.protocol.joining import Joining
from dlion_sim.protocol.link_monitor import LinkMonitor
from dlion_sim.protocol.membership import Meeting, Membership
from dlion_sim.protocol.messages import BODIES, Channel, Message
from dlion_sim.protocol.phases import Phase
from dlion_sim.protocol.registry import REGISTRY
from dlion_sim.protocol.server import ParameterServer
from dlion_sim.protocol.state_transfer import StateTransfer
from dlion_sim.protocol.sums import WeightedSums
from dlion_sim.protocol.training import Training
from dlion_sim.protocol.updates import Update
from dlion_sim.protocol.worker import Worker
from dlion_sim.scenario.input_pipeline import Input
from dlion_sim.scenario.machines import Compute
from dlion_sim.scenario.schedule import Schedule
from dlion_sim.scenario.workload import ConstantRate, CosineDecay, Optimizer, StepDecay
from dlion_sim.simulation.changes import Changes
from dlion_sim.simulation.churn import Churn, Delays
from dlion_sim.simulation.computing import Computing
from dlion_sim.simulation.connections import Connection, Connections
from dlion_sim.simulation.delivery import Transport
from dlion_sim.simulation.engine import Engine, StopRule
from dlion_sim.simulation.equipment import Node
from dlion_sim.simulation.evaluations import Evaluations
from dlion_sim.simulation.event_queue import Background, EventQueue
from dlion_sim.simulation.flows import FlowNetwork
from dlion_sim.simulation.guarded import Counts, GuardedCarrier
from dlion_sim.simulation.routing import LeafSpine, Route, Routing
from dlion_sim.simulation.sharing import SharedLinks
from dlion_sim.simulation.tcp import Framing, SlowStart, TcpModel

_CLASSES: tuple[type, ...] = (
    *(EventQueue, Background, Engine, FlowNetwork, Framing, Node, Route, SharedLinks, StopRule, Routing, Transport),
    *(Changes, Computing, Connection, Connections, Evaluations, LeafSpine, SlowStart, TcpModel),
    *(AvailabilityTotals, Counts, Delays, GuardedCarrier, Outage, Churn),
    *(ComputeDevice, InputPipeline, LinkInterval, Loss, PacketLosses, Part, Recorder, Stall, Totals, Transfer),
    *(Choices, ParameterServer, Peer, Phase, Setup, Training, WeightedSums, Worker),
    *(Barrier, StateTransfer, Joining, Meeting, Membership),
    *(Channel, Message, Merge, Update),
    *(GradientReady, ProfileReady),
    *(CostFit, CostModel, GlobalBatchSchedule, LinkMonitor, RingSum),
    *(Adam, BatchSampler, Clipped, Layout, Newest, Replica, Reservoir, Sgd, State, Ticket),
    *(Arrivals, Streamed, StreamSampler),
    *(Compute, Input, Schedule, ConstantRate, CosineDecay, Optimizer, StepDecay),
)
_METHODS: frozenset[object] = frozenset(
    {
        *(Engine._evaluate_regularly, Engine._incarnation, Engine._on_delivered, Engine._on_sent),
        *(Engine._on_timed, Engine._sample_regularly, Engine._tell, Engine._tell_capacities),
        *(Computing._on_gradient, Computing._on_profile),
        *(Transport._begin, Transport._end, Transport._come),
        *(FlowNetwork._end, FlowNetwork._settle, FlowNetwork.resize),
        *(Engine._on_came, Engine._on_cut, Engine._on_news, Engine._on_went, Recorder.membership),
        *(GuardedCarrier._on_delivered, GuardedCarrier._on_sent),
        *(Churn._announce, Churn._begin, Churn._break, Churn._crash, Churn._fall_silent),
        *(Churn._leave, Churn._meet, Churn._mend, Churn._notice),
        *(Changes._change, Connections._ended, Connections._next_round),
        Optimizer.factor,
    }
)
_CONTAINERS = (list, dict, set, frozenset, deque, bytearray)
"""What is in them would be lost of a class that is one."""


class UnknownKindError(ValueError):
    """No checkpoint may hold that."""


class Kinds:
    """The classes by their names: those of this package, and all that are defined in the user's own `modules`.

    Those of a network of packets are among them only where there are `packets`, as these take a while to load.
    """

    def __init__(self, modules: Collection[str] = (), *, packets: bool = False) -> None:
        self._modules = modules
        self._methods = _METHODS
        classes: Iterable[type] = (*_CLASSES, *_registered())
        if packets:
            from dlion_sim.simulation.packets.kinds import CLASSES, METHODS

            classes, self._methods = (*classes, *CLASSES), _METHODS | METHODS
        self._named: dict[str, type] = {_name(each): each for each in classes}
        self._names: dict[type, str] = {each: name for name, each in self._named.items()}

    def name(self, kind: type) -> str:
        """What a class is called. Raises UnknownKindError for one that no checkpoint may hold."""
        if kind not in self._names:
            if not self._is_own(kind):
                raise UnknownKindError(f"a {_name(kind)}")
            self._names[kind] = _name(kind)
        return self._names[kind]

    def named(self, name: str) -> type:
        """The class of that name. Raises UnknownKindError where a checkpoint may hold none."""
        if name not in self._named:
            self._named[name] = self._own(name)
        return self._named[name]

    def is_by_value(self, kind: type) -> bool:
        """Whether its instances are made of their values and have no state beside these."""
        return issubclass(kind, Enum | msgspec.Struct)

    def check_attributes(self, kind: type, names: Iterable[str]) -> None:
        """Raise UnknownKindError for what would take a method's place in an instance."""
        for name in names:
            if callable(getattr(kind, name, None)) and not self._is_own(kind):
                raise UnknownKindError(f"a {_name(kind)} with another {name}")

    def method(self, owner: object, name: str) -> MethodType:
        """A bound method. Raises UnknownKindError for one that may not be planned."""
        function = getattr(type(owner), name, None)
        is_own = isinstance(function, FunctionType) and self._is_own(type(owner))
        if not isinstance(function, FunctionType) or not (is_own or function in self._methods):
            raise UnknownKindError(f"the method {_name(type(owner))}.{name}")
        return MethodType(function, owner)

    def _is_own(self, kind: type) -> bool:
        return kind.__module__ in self._modules and not issubclass(kind, _CONTAINERS)

    def _own(self, name: str) -> type:
        """A class of the user's; not what a module of theirs has from elsewhere."""
        module, _, path = name.partition(":")
        found: Any = sys.modules[module] if module in self._modules else None
        for part in path.split("."):
            found = vars(found).get(part) if found is not None else None
        if not (isinstance(found, type) and self._is_own(found) and _name(found) == name):
            raise UnknownKindError(f"a {name}")
        return found


def _registered() -> Iterator[type]:
    """This package's choices, their parameters, and messages."""
    for kinds in REGISTRY.values():
        for choice in kinds.values():
            yield from (choice, choice.Parameters)
    ours = Message.__module__.partition(".")[0]
    yield from (body for body in BODIES.values() if body.__module__.partition(".")[0] == ours)


def _name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"
