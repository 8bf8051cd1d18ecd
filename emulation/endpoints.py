"""Measuring what the links of an emulated network carry, and how long it takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations

from dlion_sim.emulation.links import Link
from dlion_sim.emulation.network import LEAST_DELAY, Network
from dlion_sim.emulation.shaping import Flow
from dlion_sim.scenario import DURATION, Cluster
from dlion_sim.scenario.network import FULL_FRAME
from emulation.measurement import Measurement
from emulation.tools import has_iperf3, iperf3, ping
from emulation.traffic import WARM_UP_SECONDS, flows

_WIDE_BPS = 10e9
_LEAST_FRAMES = 100
"""By which a slow link is measured to a percent."""
_WARM_UP_ROUND_TRIPS = 20
"""Until TCP is at full speed."""


@dataclass(frozen=True)
class Throughput:
    """What one direction of a link carries, between two participants that send each other something across it."""

    link: Link
    sender: int
    receiver: int

    @property
    def name(self) -> str:
        """The link's."""
        return self.link.name

    def measure(self, network: Network, seconds: float) -> Measurement:
        """Alone, at what the link has at the scenario's start, for so many seconds, or longer if it is slow."""
        assert self.link.capacity
        stated = self.link.capacity.value_at(0.0)
        seconds = max(seconds, _LEAST_FRAMES * FULL_FRAME * 8 / stated)
        pair = (self.sender, self.receiver)
        warm_up = max(WARM_UP_SECONDS, _WARM_UP_ROUND_TRIPS * _stated_round_trip(network, *pair))
        with _others_wide(network, self.link, (network.address(self.sender), network.address(self.receiver))):
            if has_iperf3():
                payload = iperf3(network, *pair, seconds, warm_up)
            else:
                with flows(network, pair, warm_up=warm_up) as measure:
                    (payload,) = measure(seconds)
        return Measurement.of_payload(self.name, stated, payload)


@dataclass(frozen=True)
class RoundTrip:
    """How long a short message takes there and back between two participants."""

    name: str
    sender: int
    receiver: int

    def measure(self, network: Network, seconds: float) -> Measurement:
        """By ping, and with what this network leaves to nodes, who hold messages back for so long."""
        pair = (self.sender, self.receiver)
        stated = _stated_round_trip(network, *pair)
        held_back = network.missing_delay(*pair) + network.missing_delay(*pair[::-1])
        found = ping(network, *pair) + held_back
        return Measurement(self.name, stated, found, DURATION, slack=2 * LEAST_DELAY, held_back=held_back)


def to_measure(network: Network, cluster: Cluster) -> Iterator[Throughput | RoundTrip]:
    """Each direction of each link whose bandwidth is stated, then each LAN and each path between clouds."""
    participants = {network.address(number): number for number in range(len(network.machine))}
    for link in network.links:
        pairs = [(participants[source], participants[destination]) for source, destination in link.flows]
        if link.capacity and pairs:
            yield Throughput(link, *min(pairs, key=lambda pair: _stated_round_trip(network, *pair)))
    workers: dict[str, list[int]] = {cloud.name: [] for cloud in cluster.clouds}
    for worker in cluster.workers:
        workers[worker.cloud].append(worker.index)
    yield from _round_trips(workers)


def _round_trips(workers: Mapping[str, list[int]]) -> Iterator[RoundTrip]:
    for cloud, (first, *others) in workers.items():
        if others:
            yield RoundTrip(f"within {cloud}, there and back", first, others[0])
    for (one, (here, *_)), (other, (there, *_)) in combinations(workers.items(), 2):
        yield RoundTrip(f"{one} to {other} and back", here, there)


def _stated_round_trip(network: Network, one: int, other: int) -> float:
    return network.delay(one, other) + network.delay(other, one)


@contextmanager
def _others_wide(network: Network, link: Link, flow: Flow) -> Iterator[None]:
    """Within the block, no other link limits a flow, or what is sent back."""
    crossed = {flow, flow[::-1]}
    others = [other for other in network.links if other is not link and crossed & set(other.flows)]
    limited = [(other, other.capacity.value_at(0.0)) for other in others if other.capacity]
    try:
        for other, _ in limited:
            other.set(_WIDE_BPS)
        yield
    finally:
        for other, bps in limited:
            other.set(bps)
