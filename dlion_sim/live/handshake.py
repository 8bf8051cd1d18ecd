"""How two nodes prove to each other that they know the run's secret. No I/O.

The accepting node sends a nonce. The connecting one answers with who it is and wants to reach, a nonce of its own, and
an HMAC-SHA256 of all of that under the secret; and gets one back. Both MACs cover the run, both ranks, the channel,
both nonces and the role of who made it: none can be used again, for another connection, or against its maker. A key for
the connection's frames is derived in the same way. Strangers learn a nonce, and nothing else.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import struct
from dataclasses import dataclass

from dlion_sim import __version__
from dlion_sim.assembly import Setting
from dlion_sim.live.frames import PeerError, Seal
from dlion_sim.protocol.messages import Channel
from dlion_sim.scenario import dump

_NONCE_BYTES = 32
_MAC_BYTES = 32
_PROOF = struct.Struct(f"<IIB{_NONCE_BYTES}s{_MAC_BYTES}s")
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
class Admission:
    """A connection whose other end is known: what to answer it, and what its frames are sealed with."""

    ends: Ends
    welcome: bytes
    seal: Seal


class Connector:
    """The end that connects, and sends afterwards."""

    def __init__(self, credentials: Credentials, ends: Ends) -> None:
        self._credentials = credentials
        self._ends = ends
        self._nonce = secrets.token_bytes(_NONCE_BYTES)
        self._challenge = b""

    def proof(self, challenge: bytes) -> bytes:
        """The answer to the accepting end's challenge."""
        self._challenge = _challenge(challenge)
        ends = self._ends
        return _PROOF.pack(ends.sender, ends.receiver, ends.channel, self._nonce, self._digest(b"connector"))

    def finish(self, welcome: bytes) -> Seal:
        """The seal of the frames to send. Raises PeerError unless the accepting end knows the secret too."""
        if not hmac.compare_digest(welcome, self._digest(b"acceptor")):
            raise PeerError("does not know the run's secret")
        return Seal(self._digest(b"session"))

    def _digest(self, role: bytes) -> bytes:
        return _digest(self._credentials, role, self._ends, self._challenge, self._nonce)


class Acceptor:
    """The end that is connected to, and receives afterwards. `challenge` goes first."""

    def __init__(self, credentials: Credentials, receiver: int) -> None:
        self._credentials = credentials
        self._receiver = receiver
        self.challenge = secrets.token_bytes(_NONCE_BYTES)

    def admit(self, proof: bytes) -> Admission:
        """Who is there. Raises PeerError unless it knows the secret and wants to reach this node."""
        try:
            sender, receiver, channel, nonce, mac = _PROOF.unpack(proof)
            ends = Ends(sender, receiver, Channel(channel))
        except (struct.error, ValueError):
            raise PeerError("sent no proof") from None
        if not hmac.compare_digest(mac, _digest(self._credentials, b"connector", ends, self.challenge, nonce)):
            raise PeerError("knows another secret, or runs another scenario, version or code of its own")
        if receiver != self._receiver:
            raise PeerError(f"takes this for node {receiver}, not {self._receiver}")
        welcome, key = (
            _digest(self._credentials, role, ends, self.challenge, nonce) for role in (b"acceptor", b"session")
        )
        return Admission(ends, welcome, Seal(key))


def _challenge(payload: bytes) -> bytes:
    if len(payload) != _NONCE_BYTES:
        raise PeerError("sent no challenge")
    return payload


def _digest(credentials: Credentials, role: bytes, ends: Ends, challenge: bytes, nonce: bytes) -> bytes:
    """32 bytes; all that varies in length is padded, so that different inputs never read the same."""
    covered = struct.pack("<16s32sIIB", role, credentials.run, ends.sender, ends.receiver, ends.channel)
    return hmac.digest(credentials.secret, covered + challenge + nonce, "sha256")
