"""How fast and how late a network device sends, as `tc` commands.

A token bucket, and before it queues. Rates count whole Ethernet frames, so that at most 95.6 % of them is payload.

With one first-in-first-out queue, as simple routers have, flows share the link as TCP settles it: evenly on average
only. With a queue for each flow, served in turn, they share it evenly at any time; so do the queues that Linux hosts
have by default (fq_codel). Here they are classes of HTB, which needs no more of the kernel than Mininet's own links do.
Flows are told apart by their addresses and by the mark of packets with weights: a pair's weights share a link with all
else that it sends, as in the simulator.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from dlion_sim.live.sockets import WEIGHTS_TOS

Flow = tuple[str, str]
"""All that goes from one IP address to another; weights are a flow of their own."""

FRAME_BYTES = 1514
"""The longest Ethernet frame; devices hand over no longer ones (see `unbundled`)."""
PAYLOAD_BYTES = 1448
"""What TCP delivers of it."""

_QUEUE_SECONDS, _LEAST_QUEUE_FRAMES = 0.020, 12
"""Of one queue for all: TCP fills the link, and a short message does not wait long. With fewer frames TCP on slow links
runs into timeouts."""
_FLOW_QUEUE_SECONDS, _LEAST_FLOW_QUEUE_FRAMES = 0.010, 24
"""Of a flow's own: in longer ones, flows that are slower further on take more of this link than they can use."""
_BURST_SECONDS = 0.002
"""What may leave at once after a pause. Kernel timers on a busy machine are late by less."""
_LEAST_BURST_FRAMES = 2
_LEAST_BPS = 8000.0
"""What an outage lets through: a frame every 1.5 s, so that what waits goes on soon after it."""
_ANY_RATE = "100gbit"
_SHORT = 2
"""Number of the class of short frames."""
_MARKS, _MARK_BITS = (0, WEIGHTS_TOS), 0xFC
"""Of a pair's flows, and where in the second byte of an IP header they are."""
_DELAYED_FRAMES = 100_000
"""More than are ever on their way."""


def unbundled(device: str) -> str:
    """The command after which TCP hands over single frames.

    Otherwise it bundles up to 64 kB, to be cut up later, which would pass the bucket as one burst.
    """
    return f"ip link set dev {device} gso_max_segs 1"


def shape(device: str, bps: float | None, delay: float = 0.0, flows: Sequence[Flow] | None = None) -> list[str]:
    """The commands that limit what a device sends to `bps`, if given, and delay it by so many seconds, if any.

    The `flows` share it fairly; without, there is one queue.
    """
    commands = []
    if delay:
        commands.append(f"tc qdisc replace dev {device} {_delay(delay)}")
    if bps is not None and flows is not None:
        commands += _fair(device, bps, delay, flows)
    elif bps is not None:
        commands.append(f"tc qdisc replace dev {device} {_bucket(bps, delay)}")
    return commands


def reshape(device: str, bps: float, delay: float = 0.0, *, fair: bool = False) -> list[str]:
    """The command, as a list of words, that changes the rate of a device shaped before. What waits in it stays."""
    if fair:
        return f"tc class change dev {device} {_whole(bps)}".split()
    return f"tc qdisc change dev {device} {_bucket(bps, delay)}".split()


def _fair(device: str, bps: float, delay: float, flows: Sequence[Flow]) -> list[str]:
    """A class for each flow below one of the whole rate, which they borrow from in turn; short frames go first."""
    share = f"rate {_LEAST_BPS:.0f}bit ceil {_ANY_RATE} quantum {FRAME_BYTES}"
    commands = [
        f"tc qdisc replace dev {device} {_parent(delay)} handle 2: htb default {_SHORT}",
        f"tc class add dev {device} {_whole(bps)}",
        f"tc class add dev {device} parent 2:1 classid 2:{_SHORT} htb prio 0 {share}",
        f"tc qdisc add dev {device} parent 2:{_SHORT} bfifo limit {_queue(bps)}",
        # Of at most 127 bytes: acknowledgements, mostly, which must not wait for what goes the same way.
        f"tc filter add dev {device} parent 2: protocol ip prio 1 u32 match u16 0 0xff80 at 2 flowid 2:{_SHORT}",
    ]
    for number, (mark, (source, destination)) in enumerate(product(_MARKS, flows), _SHORT + 1):
        match = f"match ip src {source}/32 match ip dst {destination}/32 match ip tos {mark:#x} {_MARK_BITS:#x}"
        commands += [
            f"tc class add dev {device} parent 2:1 classid 2:{number:x} htb prio 1 {share}",
            f"tc qdisc add dev {device} parent 2:{number:x} bfifo limit {_flow_queue(bps)}",
            f"tc filter add dev {device} parent 2: protocol ip prio 2 u32 {match} flowid 2:{number:x}",
        ]
    return commands


def _whole(bps: float) -> str:
    return (
        f"parent 2: classid 2:1 htb rate {_rate(bps)}bit burst {_burst(bps)} cburst {_burst(bps)} quantum {FRAME_BYTES}"
    )


def _delay(seconds: float) -> str:
    return f"root handle 1: netem delay {seconds * 1e6:.0f}us limit {_DELAYED_FRAMES}"


def _bucket(bps: float, delay: float) -> str:
    return f"{_parent(delay)} handle 2: tbf rate {_rate(bps)}bit burst {_burst(bps)} limit {_queue(bps)}"


def _parent(delay: float) -> str:
    return "parent 1:1" if delay else "root"


def _rate(bps: float) -> int:
    return round(max(bps, _LEAST_BPS))


def _burst(bps: float) -> int:
    return max(_LEAST_BURST_FRAMES * FRAME_BYTES, round(_rate(bps) / 8 * _BURST_SECONDS))


def _queue(bps: float) -> int:
    return max(_LEAST_QUEUE_FRAMES * FRAME_BYTES, round(_rate(bps) / 8 * _QUEUE_SECONDS))


def _flow_queue(bps: float) -> int:
    return max(_LEAST_FLOW_QUEUE_FRAMES * FRAME_BYTES, round(_rate(bps) / 8 * _FLOW_QUEUE_SECONDS))
