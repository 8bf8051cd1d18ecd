"""A node's identity, by the run's secret or by files: what is wrong with these is one line."""

import warnings
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

from dlion_sim.errors import InputError
from dlion_sim.live.certificates import certificates_of
from dlion_sim.live.identity import Identity

NOW = datetime.now(UTC)
DAY = timedelta(days=1)


def named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


class Authority:
    """A CA of the user's own, in a folder."""

    def __init__(self, folder, name="ca") -> None:
        self.folder, self.name = folder, named(name)
        self.key = generate_private_key(SECP256R1())
        self.file = folder / f"{name}.pem"
        certificate = self._builder(self.name, self.key).add_extension(x509.BasicConstraints(True, None), True)
        self.file.write_bytes(certificate.sign(self.key, SHA256()).public_bytes(Encoding.PEM))

    def issue(self, node: str, *, until=NOW + DAY, encryption=None, key=None):
        """The files of a node's certificate and key."""
        key = key or generate_private_key(SECP256R1())
        names = x509.SubjectAlternativeName([x509.DNSName(node)])
        certificate = self._builder(named(node), key, until).add_extension(names, False).sign(self.key, SHA256())
        files = self.folder / f"{node}.pem", self.folder / f"{node}.key"
        files[0].write_bytes(certificate.public_bytes(Encoding.PEM))
        files[1].touch(0o600)
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption or NoEncryption())
        files[1].write_bytes(private)
        return files

    def _builder(self, name, key, until=NOW + DAY):
        number = x509.random_serial_number()
        return x509.CertificateBuilder(self.name, name, key.public_key(), number, NOW - 9 * DAY, until)


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path)


def accepts(one: Identity, other: Identity, rank: int) -> None:
    """Connect one to the other, which is that node."""
    Identity(one.client, other.server)._meet_itself(rank)


def test_nodes_of_a_secret_make_certificates_that_the_others_accept():
    ours = [Identity.of_secret(b"the run's secret", rank) for rank in (0, 1)]
    accepts(*ours, 1)
    accepts(*reversed(ours), 0)


def test_the_same_secret_gives_the_same_ca_and_a_fresh_key_to_each_node():
    one, other = (certificates_of(b"the run's secret", 1) for _ in range(2))
    keys = [x509.load_pem_x509_certificate(ca.encode()).public_key() for ca, _ in (one, other)]
    assert keys[0] == keys[1]
    nodes = [x509.load_pem_x509_certificate(pem) for _, pem in (one, other)]
    assert nodes[0].public_key() != nodes[1].public_key()
    assert keys[0] != x509.load_pem_x509_certificate(certificates_of(b"another secret..", 1)[0].encode()).public_key()
    for node in nodes:
        node.verify_directly_issued_by(x509.load_pem_x509_certificate(one[0].encode()))


def test_a_nodes_certificate_cannot_make_others():
    node = x509.load_pem_x509_certificate(certificates_of(b"the run's secret", 1)[1])
    assert not node.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def test_nodes_of_a_users_ca_accept_each_other(authority):
    ours = [Identity.of_files(authority.file, *authority.issue(f"node-{rank}"), rank) for rank in (0, 1)]
    accepts(*ours, 1)
    accepts(*reversed(ours), 0)


def problem(ca, certificate, key, rank=0) -> str:
    with pytest.raises(InputError) as told:
        Identity.of_files(ca, certificate, key, rank)
    line = str(told.value)
    assert "\n" not in line
    return line


def test_files_that_are_none_are_told(authority, tmp_path):
    certificate, key = authority.issue("node-0")
    (tmp_path / "empty").touch(0o600)
    missing, empty = tmp_path / "missing", tmp_path / "empty"
    for files in ((missing, certificate, key), (authority.file, missing, key), (authority.file, certificate, missing)):
        assert f"{missing}: cannot be read: No such file" in problem(*files)
    for files in ((empty, certificate, key), (authority.file, empty, key)):
        assert f"{empty}: holds no certificate" in problem(*files)
    assert f"{empty}: holds no private key" in problem(authority.file, certificate, empty)


def test_a_key_that_others_may_read_is_refused(authority):
    certificate, key = authority.issue("node-0")
    key.chmod(0o640)
    assert f"{key}: is open to others than its owner" in problem(authority.file, certificate, key)


def test_an_encrypted_key_is_refused(authority):
    files = authority.issue("node-0", encryption=BestAvailableEncryption(b"password"))
    assert "is encrypted" in problem(authority.file, *files)


def test_a_key_of_another_certificate_is_refused(authority):
    (certificate, _), (_, key) = authority.issue("node-0"), authority.issue("node-1")
    assert f"{certificate}: does not go with the key in {key}" in problem(authority.file, certificate, key)


def test_a_certificate_that_others_would_refuse_is_refused_at_once(authority, tmp_path):
    files = authority.issue("node-0")
    assert "not valid for 'node-1'" in problem(authority.file, *files, rank=1)
    other = Authority(tmp_path, "other")
    assert f"{files[0]}: is not accepted by other nodes: " in problem(other.file, *files)
    expired = authority.issue("node-2", until=NOW - DAY)
    assert "certificate has expired" in problem(authority.file, *expired, rank=2)


def test_a_certificate_of_a_kind_that_tls_does_not_use_is_refused(authority):
    """Its key is too short, by OpenSSL's policy."""
    with warnings.catch_warnings(action="ignore"):
        files = authority.issue("node-0", key=rsa.generate_private_key(65537, 1024))
    assert f"{files[0]}: does not go with the key in" in problem(authority.file, *files)
