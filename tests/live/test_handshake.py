"""The handshake: whoever knows the secret gets in, as who it is and where it wants to; nobody else does."""

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlion_sim.assembly import Setting
from dlion_sim.live.frames import PeerError
from dlion_sim.live.handshake import LARGEST_PAYLOAD, Acceptor, Connector, Credentials, Ends, Standing, run_digest
from dlion_sim.protocol.messages import Channel
from dlion_sim.scenario import dump, from_data, to_data
from dlion_sim.yaml_text import read_yaml
from tests.simulation.scenarios import digits

OURS = Credentials(b"the run's secret", b"r" * 32)
ENDS = Ends(2, 0, Channel.DATA)
CALLER = Standing(b"caller..", 3, joins=True)
CALLED = Standing(b"called..", 0, clock=12.5)


def test_a_run_is_told_from_any_other():
    def digest(scenario):
        return run_digest(Setting.of(scenario))

    same = digest(digits())
    assert len(same) == 32
    assert same == digest(from_data(read_yaml(dump(Setting.of(digits()).scenario))))
    others = [digits(seed=2), digits("duration=5 s"), digits("system.exchange.n_min=2"), digits(system="baseline")]
    assert len({same, *map(digest, others)}) == 5


def test_a_run_is_told_from_that_of_other_code_wherever_it_lies(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", sys.path.copy())

    def digest(folder, source):
        sys.modules.pop("shaped", None)
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "shaped.py").write_text(source)
        data = to_data(digits("workload.model=shaped:net"))
        return run_digest(Setting.of(from_data({**data, "modules": str(tmp_path / folder)})))

    net = "from torch import nn\n\ndef net():\n    return nn.Sequential(nn.Flatten(), nn.Linear(64, 10))\n"
    ours, theirs, another = digest("ours", net), digest("theirs", net), digest("another", net + "# changed\n")
    sys.modules.pop("shaped")
    assert ours == theirs
    assert ours != another
    connector, acceptor = Connector(Credentials(b"s", another), ENDS, CALLER), Acceptor(Credentials(b"s", ours), 0)
    with pytest.raises(PeerError, match=r"^knows another secret, or runs .* or code of its own$"):
        acceptor.admit(connector.proof(acceptor.challenge))


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.sampled_from(Channel))
def test_both_ends_agree_on_who_they_are_and_on_a_key(sender, receiver, channel):
    ends = Ends(sender, receiver, channel)
    connector, acceptor = Connector(OURS, ends, CALLER), Acceptor(OURS, receiver)
    admission = acceptor.admit(connector.proof(acceptor.challenge))
    assert (admission.ends, admission.standing) == (ends, CALLER)
    seal, standing = connector.finish(admission.welcome(CALLED))
    assert seal.tag(b"head") == admission.seal.tag(b"head")
    assert standing == CALLED


def test_each_connection_has_a_key_of_its_own():
    def key():
        connector, acceptor = Connector(OURS, ENDS, CALLER), Acceptor(OURS, 0)
        return acceptor.admit(connector.proof(acceptor.challenge)).seal.tag(b"head")

    assert key() != key()


@pytest.mark.parametrize(
    "theirs", [Credentials(b"another secret..", OURS.run), Credentials(OURS.secret, b"s" * 32)], ids=["secret", "run"]
)
def test_neither_end_trusts_one_of_another_secret_or_run(theirs):
    connector, acceptor = Connector(theirs, ENDS, CALLER), Acceptor(OURS, 0)
    with pytest.raises(PeerError, match="another secret"):
        acceptor.admit(connector.proof(acceptor.challenge))
    impostor = Acceptor(theirs, 0)
    proof = connector.proof(impostor.challenge)
    welcome = impostor.admit(proof).welcome(CALLED)
    honest = Connector(OURS, ENDS, CALLER)
    honest.proof(impostor.challenge)
    with pytest.raises(PeerError, match="does not know"):
        honest.finish(welcome)


def test_a_recorded_proof_is_good_for_nothing():
    connector, first = Connector(OURS, ENDS, CALLER), Acceptor(OURS, 0)
    proof = connector.proof(first.challenge)
    first.admit(proof)
    with pytest.raises(PeerError):
        Acceptor(OURS, 0).admit(proof)


def test_a_recorded_welcome_is_good_for_nothing():
    connector, acceptor = Connector(OURS, ENDS, CALLER), Acceptor(OURS, 0)
    welcome = acceptor.admit(connector.proof(acceptor.challenge)).welcome(CALLED)
    again = Connector(OURS, ENDS, CALLER)
    again.proof(acceptor.challenge)
    with pytest.raises(PeerError):
        again.finish(welcome)


def test_a_proof_cannot_be_turned_against_its_maker():
    """Whoever is challenged with a challenge of somebody else's gets nothing that works as a welcome or for others."""
    connector, acceptor = Connector(OURS, ENDS, CALLER), Acceptor(OURS, 0)
    proof = connector.proof(acceptor.challenge)
    with pytest.raises(PeerError):
        connector.finish(proof[-32:])
    other = Acceptor(OURS, 1)
    for_another = Connector(OURS, ENDS, CALLER).proof(other.challenge)
    with pytest.raises(PeerError, match="takes this for node 0"):
        other.admit(for_another)


payloads = st.binary(max_size=2 * LARGEST_PAYLOAD) | st.binary(min_size=LARGEST_PAYLOAD, max_size=LARGEST_PAYLOAD)


@settings(max_examples=100)
@given(st.lists(payloads, min_size=50, max_size=50))
def test_noise_gets_nowhere(noise):
    for data in noise:
        with pytest.raises(PeerError):
            Acceptor(OURS, 0).admit(data)
        connector = Connector(OURS, ENDS, CALLER)
        connector.proof(Acceptor(OURS, 0).challenge)
        with pytest.raises(PeerError):
            connector.finish(data)
        if len(data) != 32:
            with pytest.raises(PeerError):
                connector.proof(data)


@given(st.integers(0, 8 * (32 + 21) - 1))
def test_no_bit_of_a_welcome_can_change(bit):
    connector, acceptor = Connector(OURS, ENDS, CALLER), Acceptor(OURS, 0)
    welcome = bytearray(acceptor.admit(connector.proof(acceptor.challenge)).welcome(CALLED))
    welcome[bit // 8] ^= 1 << bit % 8
    with pytest.raises(PeerError):
        connector.finish(bytes(welcome))


@given(st.integers(0, 8 * LARGEST_PAYLOAD - 1))
def test_no_bit_of_a_proof_can_change(bit):
    connector, acceptor = Connector(OURS, ENDS, CALLER), Acceptor(OURS, 0)
    proof = bytearray(connector.proof(acceptor.challenge))
    proof[bit // 8] ^= 1 << bit % 8
    with pytest.raises(PeerError):
        acceptor.admit(bytes(proof))
