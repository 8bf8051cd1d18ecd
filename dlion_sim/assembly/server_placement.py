"""The placement of parameter servers."""

from __future__ import annotations

from collections.abc import Sequence

from dlion_sim.errors import InputError
from dlion_sim.protocol.compose import compose
from dlion_sim.protocol.topology import mixing_weights
from dlion_sim.scenario import Cluster, Scenario
from dlion_sim.scenario.system import ServerHost, hosts_of


def server_hosts(scenario: Scenario) -> Sequence[int | ServerHost]:
    """The host of each parameter server of a scenario, as `Setting.hosts`, without loading data.

    Raises InputError for an invalid host or system.
    """
    topology = compose(scenario.system, scenario.modules).topology
    mixing_weights(topology, len(scenario.cluster.workers), scenario.seed)  # It checks the hosts.
    check_clouds(hosts_of(topology), scenario.cluster)
    return hosts_of(topology)


def check_clouds(servers: Sequence[int | ServerHost], cluster: Cluster) -> None:
    """Raise InputError for a server in a cloud that does not exist."""
    clouds = [cloud.name for cloud in cluster.clouds]
    for number, server in enumerate(servers):
        if isinstance(server, ServerHost) and server.cloud not in clouds:
            raise InputError(
                f"there is no cloud '{server.cloud}'",
                path=f"system.topology.hosts.{number}.cloud",
                allowed=", ".join(clouds),
            )
