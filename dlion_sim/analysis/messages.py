"""The messages of a run: when each began, when it was there, and on whose machine."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from dlion_sim.results import Run
from dlion_sim.scenario import Lv08, Scenario
from dlion_sim.scenario.system import ParameterServers, ServerHost

SAME = 1e-7
"""Times (s) that differ by less are the same: they are sums."""
_QUEUE = ["sender", "receiver", "channel"]


def messages(run: Run, scenario: Scenario | None) -> pd.DataFrame:
    """The messages that arrived, in that order: columns as in the transfers, and `arrival` and `since` (s).

    Since then the sender's queue for them was busy. `scenario` is that of the run's links, where it is known.
    """
    sent = run.transfers().sort_values(["begin", "end"], kind="stable")
    sent = sent[sent["end"].notna()]
    is_idle = sent["begin"] > sent.groupby(_QUEUE, observed=True)["end"].shift() + SAME
    queue = [sent[column] for column in _QUEUE]
    busy_period = is_idle.groupby(queue, observed=True).cumsum()
    since = sent.groupby([*_QUEUE, busy_period.rename("period")], observed=True)["begin"]
    pairs = [*zip(sent["sender"].tolist(), sent["receiver"].tolist(), strict=True)]
    latencies = _latencies(scenario, {*pairs})
    # Packets that waited in queues, or were sent again, are there later than a latency after the last byte left.
    arrivals = sent["delivered"].fillna(sent["end"] + [latencies[pair] for pair in pairs])
    return sent.assign(since=since.transform("min"), arrival=arrivals).sort_values("arrival", kind="stable")


def _latencies(scenario: Scenario | None, pairs: set[tuple[int, int]]) -> dict[tuple[int, int], float]:
    """The seconds from the last byte's leaving to the arrival, of each link as far as it is known."""
    if scenario is None or isinstance(scenario.network.tcp, Lv08):  # There they pass before the first byte.
        return dict.fromkeys(pairs, 0.0)
    clouds = [worker.cloud for worker in scenario.cluster.workers]
    clouds += [host.cloud if isinstance(host, ServerHost) else clouds[host] for host in _hosts(scenario)]
    lans = {cloud.name: cloud.lan.rtt for cloud in scenario.cluster.clouds}

    def latency(a: str, b: str) -> float:
        return (lans[a] if a == b else scenario.cluster.wan_path(a, b)[1]) / 2

    last = len(clouds) - 1
    return {pair: latency(*(clouds[each] for each in pair)) if max(pair) <= last else 0.0 for pair in pairs}


def machines(scenario: Scenario | None, workers: int, everybody: int) -> list[int]:
    """The number of the machine of each worker and server: a worker's own, or one of nobody else."""
    hosts = _hosts(scenario) if scenario else ()
    of_servers = [host if isinstance(host, int) else workers + place for place, host in enumerate(hosts)]
    own = [*range(workers), *of_servers]
    return [*own, *range(len(own), everybody)]


def _hosts(scenario: Scenario) -> Sequence[int | ServerHost]:
    topology = scenario.system.topology
    return topology.hosts if isinstance(topology, ParameterServers) else ()
