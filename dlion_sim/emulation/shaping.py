"""How fast and how late a network device sends, as `tc` commands.

A token bucket with a short first-in-first-out queue, as an access router has. The queue holds 20 ms: enough for TCP to
fill the link, and little enough for a short message not to wait long behind a long one. Rates count whole Ethernet
frames, so that at most 1448 of 1514 bytes, 95.6 %, are payload.
"""

from __future__ import annotations

FRAME_BYTES = 1514
"""The longest Ethernet frame; devices hand over no longer ones (see `unbundled`)."""

_QUEUE_SECONDS = 0.020
_LEAST_QUEUE_FRAMES = 12
"""With fewer, TCP on slow links runs into timeouts."""
_BURST_SECONDS = 0.002
"""What may leave at once after a pause. Kernel timers on a busy machine are late by less."""
_LEAST_BURST_FRAMES = 2
_LEAST_BPS = 8000.0
"""What an outage lets through: a frame every 1.5 s, so that what waits goes on soon after it."""
_DELAYED_FRAMES = 100_000
"""More than are ever on their way."""


def unbundled(device: str) -> str:
    """The command after which TCP hands over single frames.

    Otherwise it bundles up to 64 kB, to be cut up later, which would pass the bucket as one burst.
    """
    return f"ip link set dev {device} gso_max_segs 1"


def shape(device: str, bps: float | None, delay: float = 0.0) -> list[str]:
    """The commands that limit what a device sends to `bps`, if given, and delay it by so many seconds, if any."""
    commands = []
    if delay:
        commands.append(f"tc qdisc replace dev {device} {_delay(delay)}")
    if bps is not None:
        commands.append(f"tc qdisc replace dev {device} {_bucket(bps, delay)}")
    return commands


def reshape(device: str, bps: float, delay: float = 0.0) -> list[str]:
    """The command, as a list of words, that changes the rate of a device shaped before. What waits in it stays."""
    return f"tc qdisc change dev {device} {_bucket(bps, delay)}".split()


def _delay(seconds: float) -> str:
    return f"root handle 1: netem delay {seconds * 1e6:.0f}us limit {_DELAYED_FRAMES}"


def _bucket(bps: float, delay: float) -> str:
    parent = "parent 1:1" if delay else "root"
    bytes_per_second = max(bps, _LEAST_BPS) / 8
    burst = max(_LEAST_BURST_FRAMES * FRAME_BYTES, round(bytes_per_second * _BURST_SECONDS))
    queue = max(_LEAST_QUEUE_FRAMES * FRAME_BYTES, round(bytes_per_second * _QUEUE_SECONDS))
    return f"{parent} handle 2: tbf rate {bytes_per_second * 8:.0f}bit burst {burst} limit {queue}"
