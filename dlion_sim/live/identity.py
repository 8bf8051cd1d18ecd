"""A node's identity: its certificate, and the CA whose nodes it trusts, as contexts of TLS 1.3."""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Self

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from dlion_sim.errors import InputError
from dlion_sim.live.certificates import certificates_of, name_of
from dlion_sim.live.frames import PeerError
from dlion_sim.live.private_file import read, read_private


@dataclass(frozen=True)
class Identity:
    """How a node shows who it is and recognizes others, as the end that connects and as the one that accepts."""

    client: ssl.SSLContext
    server: ssl.SSLContext

    @classmethod
    def of_secret(cls, secret: bytes, rank: int) -> Self:
        """That of a node of the run with this secret."""
        ca, certificate = certificates_of(secret, rank)
        with NamedTemporaryFile(prefix="dlion-") as file:  # Contexts read from files only; this one is its owner's.
            file.write(certificate)
            file.flush()
            return cls._of(ca, Path(file.name))

    @classmethod
    def of_files(cls, ca: Path, certificate: Path, key: Path, rank: int) -> Self:
        """That of a node by PEM files: of the CA, of its certificate, with intermediate ones, and of its private key.

        Raises InputError where other nodes would not accept it.
        """
        trusted = _certificates(ca)
        _certificates(certificate)
        _check_key(key)
        try:
            identity = cls._of("".join(each.public_bytes(Encoding.PEM).decode() for each in trusted), certificate, key)
        except ssl.SSLError as error:
            raise InputError(f"does not go with the key in {key} ({error.reason})", file=certificate) from None
        try:
            identity._meet_itself(rank)
        except ssl.SSLError as error:
            raise InputError(
                f"is not accepted by other nodes: {getattr(error, 'verify_message', error.reason)}",
                file=certificate,
                allowed=f"a valid certificate by the CA in {ca} for the DNS name {name_of(rank)}, as client and server",
            ) from None
        return identity

    def wrap(self, connected: socket.socket, receiver: int | None = None) -> ssl.SSLSocket:
        """The end of a connection to a node, or of one from a node, which `check_is` is still to find out.

        Where the connection has ended, this or its handshake raises OSError.
        """
        context, name = (self.server, None) if receiver is None else (self.client, name_of(receiver))
        return context.wrap_socket(
            connected, server_side=receiver is None, server_hostname=name, do_handshake_on_connect=False
        )

    @classmethod
    def _of(cls, ca: str, certificate: Path, key: Path | None = None) -> Self:
        client, server = (
            _context(protocol, ca, certificate, key) for protocol in (ssl.PROTOCOL_TLS_CLIENT, ssl.PROTOCOL_TLS_SERVER)
        )
        server.num_tickets = 0  # The connecting end only sends: it would not read them.
        return cls(client, server)

    def _meet_itself(self, rank: int) -> None:
        """Raise ssl.SSLError unless a node accepts it at either end."""
        one, other = ssl.MemoryBIO(), ssl.MemoryBIO()
        ends = (
            self.client.wrap_bio(one, other, server_hostname=name_of(rank)),
            self.server.wrap_bio(other, one, server_side=True),
        )
        for end in (*ends, *ends):
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()


def check_is(rank: int, certificate: Any) -> None:
    """Raise PeerError unless a peer's certificate (as of `SSLSocket.getpeercert`) is that of a node."""
    if ("DNS", name_of(rank)) not in certificate.get("subjectAltName", ()):
        raise PeerError(f"claims to be node {rank}, but has another one's certificate")


def _context(protocol: int, ca: str, certificate: Path, key: Path | None) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=ca)
    context.load_cert_chain(certificate, key)
    return context


def _certificates(file: Path) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(read(file))
    except ValueError:
        raise InputError("holds no certificate", file=file, allowed="PEM") from None


def _check_key(file: Path) -> None:
    try:
        load_pem_private_key(read_private(file), None)
    except TypeError:
        raise InputError("is encrypted", file=file, allowed="a key without a password") from None
    except (ValueError, UnsupportedAlgorithm):
        raise InputError("holds no private key", file=file, allowed="PEM") from None
