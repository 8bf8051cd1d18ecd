"""The topology: which workers exchange messages, and the weights with which they mix parameters."""

from __future__ import annotations

from collections.abc import Mapping

import networkx as nx

from dlion_sim.errors import InputError
from dlion_sim.scenario.system import (
    AllToAll,
    AnyTopology,
    Bipartite,
    Edges,
    Exponential,
    ParameterServers,
    Regular,
    Ring,
    SmallWorld,
    Torus,
)
from dlion_sim.streams import stream_seed

PATH = "system.topology"


def mixing_weights(topology: AnyTopology, workers: int, seed: int) -> list[Mapping[int, float]]:
    """Each worker's peers, in order, each with its Metropolis-Hastings weight, 1 / (1 + the larger degree of the two).

    With the rest to 1 as each worker's own weight, they are symmetric and doubly stochastic on any graph, so that
    mixing keeps the mean of all parameters (Xiao and Boyd, 2004). On a regular graph they are uniform.

    With parameter servers, which are numbered after the workers, these are every worker's peers.

    Raises InputError if there is no such graph of so many workers, or it is not connected.
    """
    if isinstance(topology, ParameterServers):
        _check_hosts(topology, workers)
        return [{workers + server: 1.0 for server in range(len(topology.hosts))} for _ in range(workers)]
    graph = _graph(topology, workers, seed)
    if workers > 1 and not nx.is_connected(graph):
        alone = min(nx.connected_components(graph), key=len)
        raise InputError(f"the graph is not connected: no edge leads out of workers {sorted(alone)}", path=PATH)
    degree = dict(graph.degree)
    return [
        {peer: 1 / (1 + max(degree[worker], degree[peer])) for peer in sorted(graph[worker])}
        for worker in range(workers)
    ]


def sides(topology: AnyTopology, workers: int, seed: int) -> list[int]:
    """Each worker's set of a bipartite graph, 0 or 1: all peers of a worker are in the other one.

    Worker 0 is in set 0. Raises InputError if the graph is not bipartite.
    """
    graph = _graph(topology, workers, seed)
    if not nx.is_bipartite(graph):
        raise InputError(
            f"{topology.kind} of {workers} workers has an odd cycle: some would have to ask and to answer at once, and "
            "such workers swap their parameters where they should average them",
            path=PATH,
            allowed="a bipartite graph: bipartite, a ring of an even number, a torus of even sides, a tree of edges",
        )
    colours = nx.bipartite.color(graph)
    return [colours[worker] ^ colours[0] for worker in range(workers)]


def _check_hosts(topology: ParameterServers, workers: int) -> None:
    for number, host in enumerate(topology.hosts):
        if isinstance(host, int) and (host >= workers or host in topology.hosts[:number]):
            raise InputError(
                f"{host} is no worker, or stands there twice",
                path=f"{PATH}.hosts.{number}",
                allowed=f"0 to {workers - 1}, each once",
            )


def is_complete(topology: AnyTopology) -> bool:
    """Whether all workers are each other's peers."""
    return isinstance(topology, AllToAll)


def _graph(topology: AnyTopology, workers: int, seed: int) -> nx.Graph:
    draw = stream_seed(seed, "topology") % 2**32
    match topology:
        case AllToAll():
            return nx.complete_graph(workers)
        case Ring():
            return nx.circulant_graph(workers, [1])
        case Bipartite():
            graph = nx.empty_graph(workers)
            graph.add_edges_from((even, odd) for even in range(0, workers, 2) for odd in range(1, workers, 2))
            return graph
        case Exponential():
            return nx.circulant_graph(
                workers, [2**power for power in range(workers.bit_length()) if 2**power < workers]
            )
        case Torus():
            rows = max(side for side in range(1, int(workers**0.5) + 1) if workers % side == 0)
            if rows < 3:
                raise InputError(f"{workers} workers make no torus of 3 by 3 or more", path=PATH)
            return nx.convert_node_labels_to_integers(nx.grid_2d_graph(rows, workers // rows, periodic=True))
        case Regular(degree=degree):
            if degree >= workers or degree * workers % 2:
                raise InputError(
                    f"{workers} workers cannot have {degree} neighbours each",
                    path=f"{PATH}.degree",
                    allowed=f"less than {workers}, and even if the number of workers is odd",
                )
            return nx.random_regular_graph(degree, workers, seed=draw)
        case SmallWorld(neighbours=neighbours, rewiring=rewiring):
            if neighbours >= workers:
                raise InputError(
                    f"{workers} workers cannot have {neighbours} neighbours each",
                    path=f"{PATH}.neighbours",
                    allowed=f"2 to {workers - 1}",
                )
            return nx.connected_watts_strogatz_graph(workers, neighbours, rewiring, seed=draw)
        case Edges(edges=edges):
            for number, (a, b) in enumerate(edges):
                if a == b or max(a, b) >= workers:
                    raise InputError(
                        f"{a} and {b} are no two workers",
                        path=f"{PATH}.edges.{number}",
                        allowed=f"two of 0 to {workers - 1}",
                    )
            graph = nx.empty_graph(workers)
            graph.add_edges_from(map(tuple, edges))
            return graph
        case ParameterServers():
            raise TypeError("parameter servers are no graph of workers")
