"""What two nodes tell each other first, once TLS has proved that both are nodes of the CA. No I/O.

The connecting node says HELLO: the run, which connection it is, and its standing in the run. The accepting one answers
WELCOME with its own. Each adds a fresh key for the datagrams that it sends on the connection's behalf.
"""

from __future__ import annotations

import hashlib
import math
import secrets
import struct
from dataclasses import dataclass
from typing import Self

from dlion_sim import __version__
from dlion_sim.assembly import Setting
from dlion_sim.live.frames import PeerError
from dlion_sim.live.identity import Identity
from dlion_sim.protocol.messages import Channel
from dlion_sim.scenario import dump

_MAGIC = b"DLN8"
"""With the version of all that nodes send each other."""
_PROCESS_BYTES = 8
_KEY_BYTES = 32
_STANDING = struct.Struct(f"<{_PROCESS_BYTES}sI?d")
_HELLO = struct.Struct(f"<4s32sIIB{_STANDING.size}s{_KEY_BYTES}s")
_WELCOME = struct.Struct(f"<{_STANDING.size}s{_KEY_BYTES}s")
LARGEST_PAYLOAD = _HELLO.size
"""Of a frame before both ends are known, in bytes."""


@dataclass(frozen=True)
class Credentials:
    """What lets a node into a run: its identity, and a digest (32 bytes) of all that is to run."""

    identity: Identity
    run: bytes


def run_digest(setting: Setting) -> bytes:
    """32 bytes that tell a run from that of any other scenario, seed, version of this program or code of one's own.

    Where that code lies may differ from host to host, if it is installed on all of them or on none.
    """
    scenario = dump(setting.scenario.model_copy(update={"modules": None}))
    return hashlib.sha256(f"{__version__}\n{setting.own_sources}\n{scenario}".encode()).digest()


def fresh_key() -> bytes:
    """A key for datagrams."""
    return secrets.token_bytes(_KEY_BYTES)


@dataclass(frozen=True)
class Ends:
    """Which connection it is: it carries what `sender` has for `receiver` on one channel."""

    sender: int
    receiver: int
    channel: Channel


@dataclass(frozen=True)
class Standing:
    """What a node says of itself to a peer."""

    process: bytes
    """8 random bytes: a node that was started again is another one."""
    session: int = 0
    """How many times this process has been connected with the peer before."""
    joins: bool = False
    """Whether it was started to join a run that is under way."""
    clock: float | None = None
    """Seconds since the run's start; None before."""

    @staticmethod
    def fresh_process() -> bytes:
        """What tells this process from any other."""
        return secrets.token_bytes(_PROCESS_BYTES)

    def pack(self) -> bytes:
        clock = math.nan if self.clock is None else self.clock
        return _STANDING.pack(self.process, self.session, self.joins, clock)

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        process, session, joins, clock = _STANDING.unpack(data)
        return cls(process, session, joins, clock if 0 <= clock < math.inf else None)


@dataclass(frozen=True)
class Hello:
    """What the connecting node says."""

    run: bytes
    ends: Ends
    standing: Standing
    key: bytes

    def pack(self) -> bytes:
        ends = self.ends
        return _HELLO.pack(_MAGIC, self.run, ends.sender, ends.receiver, ends.channel, self.standing.pack(), self.key)

    @classmethod
    def unpack(cls, data: bytes, run: bytes, receiver: int) -> Self:
        """Raises PeerError unless it is one to that node of the run."""
        if data[: len(_MAGIC)] != _MAGIC:
            raise PeerError("is of another version")
        try:
            _, theirs, sender, to, channel, standing, key = _HELLO.unpack(data)
            hello = cls(theirs, Ends(sender, to, Channel(channel)), Standing.unpack(standing), key)
        except (struct.error, ValueError):
            raise PeerError("sent no hello") from None
        if theirs != run:
            raise PeerError("runs another scenario, version or code of its own")
        if to != receiver:
            raise PeerError(f"takes this for node {to}, not {receiver}")
        return hello


@dataclass(frozen=True)
class Welcome:
    """What the accepting node answers."""

    standing: Standing
    key: bytes

    def pack(self) -> bytes:
        return _WELCOME.pack(self.standing.pack(), self.key)

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        """Raises PeerError for what is none."""
        try:
            standing, key = _WELCOME.unpack(data)
        except struct.error:
            raise PeerError("sent no welcome") from None
        return cls(Standing.unpack(standing), key)
