"""How two nodes prove to each other that they know the run's secret. No I/O.

The accepting node sends a nonce. The connecting one answers with who it is and wants to reach, its standing in the run,
a nonce of its own, and an HMAC-SHA256 of all of that under the secret; and gets a standing and a MAC back. Both MACs
cover the run, both ranks, the channel, both nonces and the role of who made it: none can be used again, for another
connection, or against its maker. A key for the connection's frames is derived in the same way. Strangers learn a nonce,
and nothing else.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import secrets
import struct
from dataclasses import dataclass
from typing import Self

from dlion_sim import __version__
from dlion_sim.assembly import Setting
from dlion_sim.live.frames import PeerError, Seal
from dlion_sim.protocol.messages import Channel
from dlion_sim.scenario import dump

_NONCE_BYTES = 32
_MAC_BYTES = 32
_PROCESS_BYTES = 8
_STANDING = struct.Struct(f"<{_PROCESS_BYTES}sI?d")
_PROOF = struct.Struct(f"<IIB{_STANDING.size}s{_NONCE_BYTES}s{_MAC_BYTES}s")
LARGEST_PAYLOAD = _PROOF.size
"""Of a frame before both ends are known, in bytes."""


@dataclass(frozen=True)
class Credentials:
    """What all nodes of a run know: its secret, and a digest (32 bytes) of all that is to run."""

    secret: bytes
    run: bytes


def run_digest(setting: Setting) -> bytes:
    """32 bytes that tell a run from that of any other scenario, seed, version of this program or code of one's own.

    Where that code lies may differ from host to host.
    """
    scenario = dump(setting.scenario.model_copy(update={"modules": None}))
    return hashlib.sha256(f"{__version__}\n{setting.own_sources}\n{scenario}".encode()).digest()


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
        """Raises struct.error where it is none."""
        process, session, joins, clock = _STANDING.unpack(data)
        return cls(process, session, joins, clock if 0 <= clock < math.inf else None)


@dataclass(frozen=True)
class Admission:
    """A connection whose other end is known, and its standing; `seal` is what its frames are sealed with."""

    ends: Ends
    standing: Standing
    seal: Seal
    _acceptor: Acceptor
    _nonce: bytes

    def welcome(self, standing: Standing) -> bytes:
        """What to answer it, where this end's standing is that."""
        told = standing.pack()
        return self._acceptor.digest(b"acceptor", self.ends, self._nonce, told) + told


class Connector:
    """The end that connects, with that standing, and sends afterwards."""

    def __init__(self, credentials: Credentials, ends: Ends, standing: Standing) -> None:
        self._credentials = credentials
        self._ends = ends
        self._standing = standing.pack()
        self._nonce = secrets.token_bytes(_NONCE_BYTES)
        self._challenge = b""

    def proof(self, challenge: bytes) -> bytes:
        """The answer to the accepting end's challenge."""
        self._challenge = _challenge(challenge)
        ends, mac = self._ends, self._digest(b"connector", self._standing)
        return _PROOF.pack(ends.sender, ends.receiver, ends.channel, self._standing, self._nonce, mac)

    def finish(self, welcome: bytes) -> tuple[Seal, Standing]:
        """The seal of the frames to send, and the accepting end's standing.

        Raises PeerError unless that knows the secret too.
        """
        mac, standing = welcome[:_MAC_BYTES], welcome[_MAC_BYTES:]
        if len(standing) != _STANDING.size or not hmac.compare_digest(mac, self._digest(b"acceptor", standing)):
            raise PeerError("does not know the run's secret")
        return Seal(self._digest(b"session")), Standing.unpack(standing)

    def _digest(self, role: bytes, told: bytes = b"") -> bytes:
        return _digest(self._credentials, role, self._ends, self._challenge, self._nonce, told)


class Acceptor:
    """The end that is connected to, and receives afterwards. `challenge` goes first."""

    def __init__(self, credentials: Credentials, receiver: int) -> None:
        self._credentials = credentials
        self._receiver = receiver
        self.challenge = secrets.token_bytes(_NONCE_BYTES)

    def admit(self, proof: bytes) -> Admission:
        """Who is there. Raises PeerError unless it knows the secret and wants to reach this node."""
        try:
            sender, receiver, channel, told, nonce, mac = _PROOF.unpack(proof)
            ends, standing = Ends(sender, receiver, Channel(channel)), Standing.unpack(told)
        except (struct.error, ValueError):
            raise PeerError("sent no proof") from None
        if not hmac.compare_digest(mac, self.digest(b"connector", ends, nonce, told)):
            raise PeerError("knows another secret, or runs another scenario, version or code of its own")
        if receiver != self._receiver:
            raise PeerError(f"takes this for node {receiver}, not {self._receiver}")
        return Admission(ends, standing, Seal(self.digest(b"session", ends, nonce)), self, nonce)

    def digest(self, role: bytes, ends: Ends, nonce: bytes, told: bytes = b"") -> bytes:
        """The MAC of what an end in that role has told of itself."""
        return _digest(self._credentials, role, ends, self.challenge, nonce, told)


def _challenge(payload: bytes) -> bytes:
    if len(payload) != _NONCE_BYTES:
        raise PeerError("sent no challenge")
    return payload


def _digest(credentials: Credentials, role: bytes, ends: Ends, challenge: bytes, nonce: bytes, told: bytes) -> bytes:
    """32 bytes; all that varies in length is padded or last, so that different inputs never read the same."""
    covered = struct.pack("<16s32sIIB", role, credentials.run, ends.sender, ends.receiver, ends.channel)
    return hmac.digest(credentials.secret, covered + challenge + nonce + told, "sha256")
