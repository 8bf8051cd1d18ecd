"""How fast and how late a network device sends, as `tc` commands.

A token bucket, and before it queues. Rates count whole Ethernet frames, so that at most 95.6 % of them is payload.

With one first-in-first-out queue, as simple routers have, flows share the link as TCP settles it: evenly on average
only. With a queue for each flow, served in turn, they share it evenly at any time; so do the queues that Linux hosts
have by default (fq_codel). Here they are classes of HTB, which needs no more of the kernel than Mininet's own links do.
These queues are of the size that the scenario says, if it does.
Flows are told apart by their addresses and by the mark of packets with weights: a pair's weights share a link with all
else that it sends, as in the simulator.

With a switch's queues, of the size that the scenario says, packets go by the priority that their DSCP says, and are
marked or dropped above a threshold; with a kernel that lacks the means, they wait in one queue of that size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Protocol

from dlion_sim.live.connection import WEIGHTS_TOS, tos_of_priority
from dlion_sim.scenario import Packets
from dlion_sim.scenario.network import BURST_SECONDS, FULL_FRAME

Flow = tuple[str, str]
"""All that goes from one IP address to another; weights are a flow of their own."""

_QUEUE_SECONDS, _LEAST_QUEUE_FRAMES = 0.020, 12
"""Of one queue for all: TCP fills the link, and a short message does not wait long. With fewer frames TCP on slow links
runs into timeouts."""
_FLOW_QUEUE_SECONDS, LEAST_FLOW_QUEUE_FRAMES = 0.010, 24
"""Of a flow's own: in longer ones, flows that are slower further on take more of this link than they can use."""
LEAST_BURST_FRAMES = 2
"""What may leave at once after a pause."""
_LEAST_BPS = 8000.0
"""What an outage lets through: a frame every 1.5 s, so that what waits goes on soon after it."""
_OWN_BPS = 80.0
"""What each flow may send besides what it borrows. All of them together must be far below what an outage lets through:
what they send above that the link owes afterwards, up to a minute for which it would stay slow."""
_ANY_RATE = "100gbit"
_SHORT = 2
"""Number of the class of short frames."""
_MARK_BITS = 0xFC
"""Where in the second byte of an IP header the DSCP is."""
_MARKS = ("", f" match ip tos {WEIGHTS_TOS:#x} {_MARK_BITS:#x}")
"""What tells a pair's flows apart: weights from all else."""
_LEAST_BANDS = 2
"""Of `prio`."""
_DELAYED_FRAMES = 100_000
"""More than are ever on their way."""


def unbundled(device: str) -> str:
    """The command after which TCP hands over single frames.

    Otherwise it bundles up to 64 kB, to be cut up later, which would pass the bucket as one burst.
    """
    return f"ip link set dev {device} gso_max_segs 1"


class Queues(Protocol):
    """What waits for a device, and how."""

    def made(self, device: str, bps: float, parent: str) -> list[str]:
        """The commands that make a device send no more than `bps`, below a `parent`."""

    def changed(self, device: str, bps: float, parent: str) -> str:
        """The command that changes this rate. What waits stays."""


@dataclass(frozen=True)
class OneQueue:
    """All wait in one queue, of so many bytes; by default as many as TCP needs."""

    size: float | None = None

    def made(self, device: str, bps: float, parent: str) -> list[str]:
        return [f"tc qdisc replace dev {device} {self._bucket(bps, parent)}"]

    def changed(self, device: str, bps: float, parent: str) -> str:
        return f"tc qdisc change dev {device} {self._bucket(bps, parent)}"

    def _bucket(self, bps: float, parent: str) -> str:
        limit = _queue(bps) if self.size is None else round(self.size)
        return f"{parent} handle 2: tbf rate {_rate(bps)}bit burst {_burst(bps)} limit {limit}"


@dataclass(frozen=True)
class FairQueues:
    """A class for each flow below one of the whole rate, which they borrow from in turn; short frames go first.

    Each has a queue of so many bytes, by default as many as TCP needs.
    """

    flows: Sequence[Flow]
    size: float | None = None

    def made(self, device: str, bps: float, parent: str) -> list[str]:
        share = f"rate {_OWN_BPS:.0f}bit ceil {_ANY_RATE} quantum {FULL_FRAME}"
        commands = [
            f"tc qdisc replace dev {device} {parent} handle 2: htb default {_SHORT}",
            f"tc class add dev {device} {_whole(bps)}",
            f"tc class add dev {device} parent 2:1 classid 2:{_SHORT} htb prio 0 {share}",
            f"tc qdisc add dev {device} parent 2:{_SHORT} bfifo limit {_queue(bps)}",
            # Of at most 127 bytes: acknowledgements, mostly, which must not wait for what goes the same way.
            f"tc filter add dev {device} parent 2: protocol ip prio 1 u32 match u16 0 0xff80 at 2 flowid 2:{_SHORT}",
        ]
        for number, (mark, (source, destination)) in enumerate(product(_MARKS, self.flows), _SHORT + 1):
            match = f"match ip src {source}/32 match ip dst {destination}/32{mark}"
            filters = f"parent 2: protocol ip prio {2 if mark else 3} u32"
            limit = _flow_queue(bps) if self.size is None else round(self.size)
            commands += [
                f"tc class add dev {device} parent 2:1 classid 2:{number:x} htb prio 1 {share}",
                f"tc qdisc add dev {device} parent 2:{number:x} bfifo limit {limit}",
                f"tc filter add dev {device} {filters} {match} flowid 2:{number:x}",
            ]
        return commands

    def changed(self, device: str, bps: float, parent: str) -> str:
        return f"tc class change dev {device} {_whole(bps)}"


@dataclass(frozen=True)
class MarkingQueues:
    """A queue for each priority, highest first; above a threshold packets are marked if they can be, or else dropped.

    It needs `prio` and `red` of the kernel.
    """

    packets: Packets

    def made(self, device: str, bps: float, parent: str) -> list[str]:
        bands = max(_LEAST_BANDS, self.packets.priorities)
        commands = [
            *OneQueue(self.packets.buffer).made(device, bps, parent),
            # What has no priority, such as acknowledgements and what only TCP carries, has the highest.
            f"tc qdisc add dev {device} parent 2:1 handle 3: prio bands {bands} priomap {' '.join('0' * 16)}",
        ]
        for priority in range(self.packets.priorities):
            match = f"match ip tos {tos_of_priority(priority):#x} {_MARK_BITS:#x}"
            commands += [
                f"tc qdisc add dev {device} parent 3:{priority + 1:x} {self._band()}",
                f"tc filter add dev {device} parent 3: protocol ip prio 1 u32 {match} flowid 3:{priority + 1:x}",
            ]
        return commands

    def changed(self, device: str, bps: float, parent: str) -> str:
        return OneQueue(self.packets.buffer).changed(device, bps, parent)

    def _band(self) -> str:
        """RED that goes by what waits now, as DCTCP wants it: its average follows within a packet or two."""
        limit = round(self.packets.buffer)
        threshold = round(min(self.packets.drop_above, self.packets.mark_above))
        if threshold + FULL_FRAME > limit:
            return f"bfifo limit {limit}"
        thresholds = f"min {threshold} max {threshold + FULL_FRAME} avpkt {FULL_FRAME}"
        return f"red limit {limit} {thresholds} burst {threshold // FULL_FRAME + 1} probability 1 ecn"


def shape(device: str, bps: float | None, delay: float = 0.0, queues: Queues = OneQueue()) -> list[str]:
    """The commands that limit what a device sends to `bps`, if given, and delay it by so many seconds, if any."""
    commands = []
    if delay:
        commands.append(f"tc qdisc replace dev {device} {_delay(delay)}")
    if bps is not None:
        commands += queues.made(device, bps, _parent(delay))
    return commands


def reshape(device: str, bps: float, delay: float = 0.0, queues: Queues = OneQueue()) -> list[str]:
    """The command, as a list of words, that changes the rate of a device shaped before. What waits in it stays."""
    return queues.changed(device, bps, _parent(delay)).split()


def _whole(bps: float) -> str:
    return (
        f"parent 2: classid 2:1 htb rate {_rate(bps)}bit burst {_burst(bps)} cburst {_burst(bps)} quantum {FULL_FRAME}"
    )


def _delay(seconds: float) -> str:
    return f"root handle 1: netem delay {seconds * 1e6:.0f}us limit {_DELAYED_FRAMES}"


def _parent(delay: float) -> str:
    return "parent 1:1" if delay else "root"


def _rate(bps: float) -> int:
    return round(max(bps, _LEAST_BPS))


def _burst(bps: float) -> int:
    return max(LEAST_BURST_FRAMES * FULL_FRAME, round(_rate(bps) / 8 * BURST_SECONDS))


def _queue(bps: float) -> int:
    return max(_LEAST_QUEUE_FRAMES * FULL_FRAME, round(_rate(bps) / 8 * _QUEUE_SECONDS))


def _flow_queue(bps: float) -> int:
    return max(LEAST_FLOW_QUEUE_FRAMES * FULL_FRAME, round(_rate(bps) / 8 * _FLOW_QUEUE_SECONDS))
