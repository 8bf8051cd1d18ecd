"""What becomes of a message in packets, and endpoints without I/O, clocks or random numbers.

Compiled code is imported only by whoever uses packets.
"""

from __future__ import annotations

from dlion_sim.errors import InputError
from dlion_sim.scenario import Dlcp, Flows, Packets, Pfabric, Reliable, Scenario


def check(scenario: Scenario) -> None:
    """Raise InputError where a simulation cannot model the scenario's transport, or what is asked of it."""
    if not isinstance(scenario.transport, Reliable) and isinstance(scenario.network.model, Flows):
        raise InputError(
            f"{scenario.transport.kind} is of packets, and flows have none",
            path="transport",
            allowed="reliable; or any, with network: {model: packets}",
        )
    model = scenario.network.model
    if isinstance(scenario.transport, Pfabric) and isinstance(model, Packets) and model.fair:
        raise InputError("pfabric's queues go by what is left of messages", path="network.model.fair", allowed="false")
    if scenario.availability is not None and not isinstance(scenario.network.model, Flows):
        raise InputError(
            "in a network of packets nobody can come or go", path="availability", allowed="with network: {model: flows}"
        )
    if isinstance(scenario.transport, Dlcp) and scenario.workload.cost_as is not None:
        raise InputError(
            "packets of entries that are only charged for cannot be lost", path="workload.cost_as", allowed="null"
        )


def check_live(scenario: Scenario) -> None:
    """Raise InputError where real nodes cannot use the scenario's transport."""
    if isinstance(scenario.transport, Pfabric):
        raise InputError(
            "pfabric needs switches that only a simulation has", path="transport", allowed="reliable, dlcp"
        )
