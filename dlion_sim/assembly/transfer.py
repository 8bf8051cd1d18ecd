"""Transfers: messages on links, as they are recorded."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from dlion_sim.protocol.messages import Channel, Message

PROBE_BYTES = 32_768
"""The size of the probe that follows the first message on a link's data channel, if that is shorter: the time of a
short message is mostly a round trip, and does not measure bandwidth."""


class Part(NamedTuple):
    """The packets of a message that are of one variable, and either large or small."""

    variable: int
    """Its number in the layout."""
    large: bool
    """Whether they are those of its packets with larger entries."""
    bytes: int
    lost: int
    """Of these, missing at the receiver."""
    seconds: float | None
    """From the message's first byte until the last received one of them; None if not known, or none was."""


class Loss(NamedTuple):
    """The outcome of a message that was sent in packets, in bytes as charged to links."""

    lost: int
    """Missing at the receiver."""
    resent: int
    """Sent again; counted once for each time."""
    saved: int
    """Never sent, as the receiver had enough."""
    parts: tuple[Part, ...] = ()
    """For messages of which a part may be missing."""
    seconds: float | None = None
    """From its first byte until it was delivered; None if that is when it was sent."""


@dataclass(slots=True)
class Transfer:
    """A message whose first byte was sent at `began` (seconds of the run's clock)."""

    receiver: int
    message: Message
    began: float
    scale: float = 1.0
    """Bytes charged for each byte of its tensors, if these grow as the model."""
    counted: int = 0
    """Its bytes that have been recorded for the link."""
    loss: Loss | None = None
    """The outcome, at its end, of a message that was sent in packets."""

    @property
    def sender(self) -> int:
        return self.message.sender

    @property
    def size(self) -> int:
        """Bytes charged to links."""
        if self.scale == 1.0:
            return self.message.size
        header = len(self.message.header)
        return header + round(math.pow(self.scale, self.message.body.growth) * (self.message.size - header))

    @property
    def probe(self) -> int:
        """Bytes of the probe that follows it if it is the first message on its link's channel."""
        return PROBE_BYTES if self.message.body.channel is Channel.DATA and self.size < PROBE_BYTES else 0

    def count(self, carried: float) -> int:
        """Set the bytes carried until now, and return their increase."""
        more = max(0, min(int(carried), self.size) - self.counted)
        self.counted += more
        return more
