"""The classes that a checkpoint may hold, which are nothing but state, and the methods that may be scheduled."""

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
from dlion_sim.assembly.optional_totals import AvailabilityTotals, PacketTotals, StreamTotals
from dlion_sim.assembly.outages import Outage
from dlion_sim.assembly.recording import LinkInterval
from dlion_sim.assembly.totals import Totals
from dlion_sim.assembly.transfer import Loss, Part, Transfer
from dlion_sim.learning import BatchSampler, Layout, Newest, Replica, Reservoir, Ticket
from dlion_sim.learning.optimizer import Adam, Clipped, Sgd
from dlion_sim.learning.replica import State
from dlion_sim.protocol.barrier import Barrier
from dlion_sim.protocol.batching.profile import CostFit, CostModel
from dlion_sim.protocol.batching.weighted_dynamic import GlobalBatchSchedule
from dlion_sim.protocol.choices import Choices, Merge, Peer, Setup
from dlion_sim.protocol.events import GradientReady, ProfileReady
from dlion_sim.protocol.exchange.ring_sum import RingSum
from dlion_sim.protocol.joining import Joining
from dlion_sim.protocol.link_monitor import LinkMonitor
from dlion_sim.protocol.membership import Handshake, Membership
from dlion_sim.protocol.messages import BODIES, Channel, Message
from dlion_sim.protocol.phases import Phase
from dlion_sim.protocol.registry import REGISTRY
from dlion_sim.protocol.server import ParameterServer
from dlion_sim.protocol.state_transfer import StateTransfer
from dlion_sim.protocol.training import Training
from dlion_sim.protocol.updates import Update, WeightedSums
from dlion_sim.protocol.worker import Worker
from dlion_sim.scenario.machines import Compute
from dlion_sim.scenario.schedule import Schedule
from dlion_sim.scenario.workload import ConstantRate, CosineDecay, Input, Optimizer, StepDecay
from dlion_sim.simulation.carrier import CapacityChanges, Listener
from dlion_sim.simulation.churn import Churn, Delays
from dlion_sim.simulation.computing import Computing, Node
from dlion_sim.simulation.delivery import Transport
from dlion_sim.simulation.engine import Engine, MessageCounts, StopRule
from dlion_sim.simulation.evaluations import Evaluations
from dlion_sim.simulation.event_queue import Background, EventQueue
from dlion_sim.simulation.flows import FlowNetwork
from dlion_sim.simulation.routing import LeafSpine, Route, Routing
from dlion_sim.simulation.sharing import SharedLinks
from dlion_sim.simulation.tcp import Connection, Connections, Framing, SlowStart, TcpModel

_CLASSES: tuple[type, ...] = (
    *(EventQueue, Background, Engine, FlowNetwork, Framing, Node, Route, SharedLinks, StopRule, Routing, Transport),
    *(CapacityChanges, Computing, Connection, Connections, Evaluations, LeafSpine, SlowStart, TcpModel),
    *(AvailabilityTotals, Delays, Listener, MessageCounts, Outage, Churn),
    *(ComputeDevice, InputPipeline, LinkInterval, Loss, PacketTotals, Part, Recorder, Stall, Totals, Transfer),
    *(Choices, ParameterServer, Peer, Phase, Setup, Training, WeightedSums, Worker),
    *(Barrier, StateTransfer, Joining, Handshake, Membership),
    *(Channel, Message, Merge, Update),
    *(GradientReady, ProfileReady),
    *(CostFit, CostModel, GlobalBatchSchedule, LinkMonitor, RingSum),
    *(Adam, BatchSampler, Clipped, Layout, Newest, Replica, Reservoir, Sgd, State, Ticket),
    *(Arrivals, StreamTotals, StreamSampler),
    *(Compute, Input, Schedule, ConstantRate, CosineDecay, Optimizer, StepDecay),
)
_METHODS: frozenset[object] = frozenset(
    {
        *(Engine._evaluate_regularly, Engine._incarnation, Engine._on_delivered, Engine._on_sent),
        *(Engine._on_timed, Engine._sample_regularly, Engine._handle, Engine._report_capacities),
        *(Computing._on_gradient, Computing._on_profile),
        *(Transport._begin, Transport._end, Transport._enqueue_delayed),
        *(FlowNetwork._end, FlowNetwork._settle, FlowNetwork.resize),
        *(
            Engine._on_process_started,
            Engine._on_connection_lost,
            Engine._on_membership_event,
            Engine._on_process_ended,
            Recorder.membership,
        ),
        *(Churn._notify, Churn._start_process, Churn._interrupt_path, Churn._crash, Churn._time_out),
        *(Churn._leave, Churn._complete_handshake, Churn._restore_path, Churn._detect_failure),
        *(CapacityChanges._apply, Connections._ended, Connections._next_round),
        Optimizer.factor,
    }
)
_CONTAINERS = (list, dict, set, frozenset, deque, bytearray)
"""A user's class must not be one of these, whose items would be lost."""


class UnknownKindError(ValueError):
    """An object, class or method that a checkpoint may not hold."""


class Kinds:
    """The listed classes of this package by name, and all classes of the user's own `modules`.

    Classes of a network of packets are included only with `packets`, as their modules take a while to load.
    """

    def __init__(self, modules: Collection[str] = (), *, packets: bool = False) -> None:
        self._modules = modules
        self._methods = _METHODS
        classes: Iterable[type] = (*_CLASSES, *_registered())
        if packets:
            of_packets, methods = _of_packets()
            classes, self._methods = (*classes, *of_packets), _METHODS | methods
        self._named: dict[str, type] = {_name(each): each for each in classes}
        self._names: dict[type, str] = {each: name for name, each in self._named.items()}

    def name(self, kind: type) -> str:
        """The name of a class. Raises UnknownKindError for one that a checkpoint may not hold."""
        if kind not in self._names:
            if not self._is_own(kind):
                raise UnknownKindError(f"a {_name(kind)}")
            self._names[kind] = _name(kind)
        return self._names[kind]

    def named(self, name: str) -> type:
        """The class of that name. Raises UnknownKindError if a checkpoint may not hold it."""
        if name not in self._named:
            self._named[name] = self._own(name)
        return self._named[name]

    def is_by_value(self, kind: type) -> bool:
        """Whether its instances are made from their values and have no further state."""
        return issubclass(kind, Enum | msgspec.Struct)

    def check_attributes(self, kind: type, names: Iterable[str]) -> None:
        """Raise UnknownKindError for an attribute that would replace a method of an instance."""
        for name in names:
            if callable(getattr(kind, name, None)) and not self._is_own(kind):
                raise UnknownKindError(f"a {_name(kind)} with another {name}")

    def method(self, owner: object, name: str) -> MethodType:
        """A bound method. Raises UnknownKindError for one that may not be scheduled."""
        function = getattr(type(owner), name, None)
        is_own = isinstance(function, FunctionType) and self._is_own(type(owner))
        if not isinstance(function, FunctionType) or not (is_own or function in self._methods):
            raise UnknownKindError(f"the method {_name(type(owner))}.{name}")
        return MethodType(function, owner)

    def _is_own(self, kind: type) -> bool:
        return kind.__module__ in self._modules and not issubclass(kind, _CONTAINERS)

    def _own(self, name: str) -> type:
        """A class that is defined in a module of the user's."""
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


def _of_packets() -> tuple[tuple[type, ...], frozenset[object]]:
    """The classes and methods of a network of packets, whose modules take a while to load."""
    from dlion_sim.bounded_loss.assembling import Assembler
    from dlion_sim.bounded_loss.bounds import Bounds
    from dlion_sim.bounded_loss.cutting import Cut, Cutter, Variables
    from dlion_sim.scenario import Dlcp, LossPhase, Packets, Pfabric, Reliable, StageBounds
    from dlion_sim.simulation.packets.delivery import PacketDelivery
    from dlion_sim.simulation.packets.lossy import LossyMessages
    from dlion_sim.simulation.packets.memory import Memory
    from dlion_sim.simulation.packets.network import PacketNetwork
    from dlion_sim.simulation.packets.queues import Queues
    from dlion_sim.simulation.packets.routes import PacketRoutes

    classes: tuple[type, ...] = (
        *(Memory, PacketNetwork, PacketDelivery, Queues, PacketRoutes),
        *(Assembler, Bounds, Cut, Cutter, LossyMessages, Variables),
        *(Dlcp, LossPhase, Packets, Pfabric, Reliable, StageBounds),
    )
    methods: frozenset[object] = frozenset(
        {
            *(
                PacketDelivery._request_advance,
                PacketDelivery._advance,
                PacketDelivery._deliver_locally,
                PacketDelivery._resize,
            ),
            PacketDelivery._report,
        }
    )
    return classes, methods


def _name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"
