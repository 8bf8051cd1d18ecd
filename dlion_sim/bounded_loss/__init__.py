"""Bounded loss: messages of which a part may be missing, and endpoints without I/O, clocks or random numbers.

Modules with compiled code are imported only where packets are used.
"""

from __future__ import annotations

from dlion_sim.errors import InputError
from dlion_sim.scenario import Dlcp, Flows, Packets, Pfabric, Reliable, Scenario


def check(scenario: Scenario) -> None:
    """Raise InputError if a simulation cannot model the scenario's transport or network."""
    if not isinstance(scenario.transport, Reliable) and isinstance(scenario.network.model, Flows):
        raise InputError(
            f"{scenario.transport.kind} needs packets, which the flow model does not have",
            path="transport",
            allowed="reliable; or any, with network: {model: packets}",
        )
    model = scenario.network.model
    if isinstance(scenario.transport, Pfabric) and isinstance(model, Packets) and model.fair:
        raise InputError(
            "pfabric queues packets by the remaining size of messages", path="network.model.fair", allowed="false"
        )
    if scenario.availability is not None and not isinstance(scenario.network.model, Flows):
        raise InputError(
            "availability is not modelled in a network of packets",
            path="availability",
            allowed="with network: {model: flows}",
        )
    if isinstance(scenario.transport, Dlcp) and scenario.workload.cost_as is not None:
        raise InputError(
            "with cost_as, packets that are only charged for cannot be lost", path="workload.cost_as", allowed="null"
        )


def check_live(scenario: Scenario) -> None:
    """Raise InputError if live nodes cannot use the scenario's transport."""
    if isinstance(scenario.transport, Pfabric):
        raise InputError(
            "pfabric needs switches that only a simulation has", path="transport", allowed="reliable, dlcp"
        )
