"""Where parameter servers are."""

from __future__ import annotations

from collections.abc import Sequence

from dlion_sim.errors import InputError
from dlion_sim.protocol.compose import compose
from dlion_sim.protocol.topology import mixing_weights
from dlion_sim.scenario import Cluster, Scenario
from dlion_sim.scenario.topology import AnyTopology, ParameterServers, ServerHost


def server_hosts(scenario: Scenario) -> Sequence[int | ServerHost]:
    """Where each parameter server of a scenario is, as `Setting.hosts`, for which it takes no data.

    Raises InputError where one cannot be there, or the system cannot be.
    """
    topology = compose(scenario.system, scenario.modules).topology
    mixing_weights(topology, len(scenario.cluster.workers), scenario.seed)  # It knows who may be a host.
    check_clouds(hosts_of(topology), scenario.cluster)
    return hosts_of(topology)


def hosts_of(topology: AnyTopology) -> Sequence[int | ServerHost]:
    """Where the parameter servers are, if there are any: at a worker, by number, or on a machine of their own."""
    return topology.hosts if isinstance(topology, ParameterServers) else ()


def check_clouds(servers: Sequence[int | ServerHost], cluster: Cluster) -> None:
    """Raise InputError for a server in a cloud that is not there."""
    clouds = [cloud.name for cloud in cluster.clouds]
    for number, server in enumerate(servers):
        if isinstance(server, ServerHost) and server.cloud not in clouds:
            raise InputError(
                f"there is no cloud '{server.cloud}'",
                path=f"system.topology.hosts.{number}.cloud",
                allowed=", ".join(clouds),
            )
