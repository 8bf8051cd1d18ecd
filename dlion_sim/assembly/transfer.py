"""A message on its way over a link."""

from __future__ import annotations

from dataclasses import dataclass

from dlion_sim.protocol.messages import Message


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
