"""The certificates of a run, which its secret stands for: each node makes its own, under a CA that all of them know.

The CA's key is derived from the secret, so that the secret is all that has to be copied between hosts; whoever has it
can make a certificate for any node.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_CA_NAME = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "dlion_sim run")])
_BEFORE, _AFTER = timedelta(days=1), timedelta(days=365)
"""How long before now and after it certificates are valid: hosts' clocks may differ, and runs may be long."""


def name_of(rank: int) -> str:
    """The DNS name in a node's certificate."""
    return f"node-{rank}"


def certificates_of(secret: bytes, rank: int) -> tuple[str, bytes]:
    """The CA's certificate, and that of the node with its private key; all in PEM."""
    # Strangers who connect see a certificate that the CA has signed, and can test guesses of the secret by it. The
    # secret is random; should it not be, scrypt makes each guess expensive.
    derived = hashlib.scrypt(secret, salt=b"dlion_sim CA", n=2**14, r=8, p=1, dklen=32)
    ca_key, node_key = Ed25519PrivateKey.from_private_bytes(derived), Ed25519PrivateKey.generate()
    ca = _builder(_CA_NAME, ca_key.public_key(), ca_key.public_key())
    ca = ca.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    ca = ca.add_extension(_usage(signs_certificates=True), critical=True)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name_of(rank))])
    node = _builder(name, node_key.public_key(), ca_key.public_key())
    node = node.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    node = node.add_extension(_usage(signs_certificates=False), critical=True)
    node = node.add_extension(x509.SubjectAlternativeName([x509.DNSName(name_of(rank))]), critical=False)
    both_ends = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    node = node.add_extension(x509.ExtendedKeyUsage(both_ends), critical=False)
    private = node_key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    pem = serialization.Encoding.PEM
    return ca.sign(ca_key, None).public_bytes(pem).decode(), node.sign(ca_key, None).public_bytes(pem) + private


def _builder(name: x509.Name, key: Ed25519PublicKey, issuer: Ed25519PublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder(_CA_NAME, name, key, x509.random_serial_number(), now - _BEFORE, now + _AFTER)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
