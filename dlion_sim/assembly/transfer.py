"""A message on its way over a link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from dlion_sim.protocol.messages import Message

PROBE_BYTES = 32_768
"""What follows the first message on a link's data channel, if that is shorter: its own time, mostly a round trip, would
not tell what the link carries."""


class Part(NamedTuple):
    """What became of those packets of a message that are of one variable, and large or small ones."""

    variable: int
    """Its number in the layout."""
    large: bool
    """Whether they are those of its packets whose entries are the larger ones."""
    bytes: int
    lost: int
    """Of these, that the receiver did without."""
    seconds: float | None
    """From the message's first byte until the last of them was there that the receiver took; None where that is not
    known, or none was."""


class Loss(NamedTuple):
    """What a transport of packets made of a message, in its bytes as links are charged them."""

    lost: int
    """That the receiver did without."""
    resent: int
    """That were sent again; those that were sent twice again count twice."""
    saved: int
    """That were never sent, as the receiver had enough."""
    parts: tuple[Part, ...] = ()
    """Of a message that may lose packets."""
    seconds: float | None = None
    """From its first byte until the receiver had all that it waited for; None where that is when it was sent."""


@dataclass(slots=True)
class Transfer:
    """A message whose first byte was sent at `began` (seconds of the run's clock)."""

    receiver: int
    message: Message
    began: float
    scale: float = 1.0
    """What each byte of its tensors is charged as."""
    counted: int = 0
    """Bytes of it that are among what its link has carried."""
    loss: Loss | None = None
    """Known, at its end, of a message that was sent in packets."""

    @property
    def sender(self) -> int:
        return self.message.sender

    @property
    def size(self) -> int:
        """Bytes that links are charged."""
        if self.scale == 1.0:
            return self.message.size
        header = len(self.message.header)
        return header + round(self.scale * (self.message.size - header))

    def count(self, carried: float) -> int:
        """Count what of its bytes has been carried by now, and return how many these are more than before."""
        more = max(0, min(int(carried), self.size) - self.counted)
        self.counted += more
        return more
