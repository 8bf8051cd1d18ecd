"""What nodes say first: what is of another run or node, or makes no sense, is refused."""

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlion_sim.assembly import Setting
from dlion_sim.live.frames import PeerError
from dlion_sim.live.handshake import LARGEST_PAYLOAD, Ends, Hello, Standing, Welcome, fresh_key, run_digest
from dlion_sim.protocol.messages import Channel
from dlion_sim.scenario import dump, from_data, to_data
from dlion_sim.yaml_text import read_yaml
from tests.simulation.scenarios import digits

RUN = b"r" * 32
standings = st.builds(
    Standing,
    st.binary(min_size=8, max_size=8),
    st.integers(0, 2**32 - 1),
    st.booleans(),
    st.none() | st.floats(0, 1e9),
)
ranks = st.integers(0, 2**32 - 1)
keys = st.binary(min_size=32, max_size=32)
hellos = st.builds(Hello, st.just(RUN), st.builds(Ends, ranks, ranks, st.sampled_from(Channel)), standings, keys)


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


@given(hellos)
def test_hellos_come_back(hello):
    data = hello.pack()
    assert len(data) == LARGEST_PAYLOAD
    assert Hello.unpack(data, RUN, hello.ends.receiver) == hello


@given(standings, keys)
def test_welcomes_come_back(standing, key):
    assert Welcome.unpack(Welcome(standing, key).pack()) == Welcome(standing, key)


@given(hellos, st.integers(0, 8 * 36 - 1), ranks)
def test_a_hello_of_another_version_or_run_or_to_another_node_is_refused(hello, bit, other):
    data = bytearray(hello.pack())
    if other != hello.ends.receiver:
        with pytest.raises(PeerError, match="takes this for node"):
            Hello.unpack(bytes(data), RUN, other)
    data[bit // 8] ^= 1 << bit % 8
    with pytest.raises(PeerError, match="another version" if bit < 32 else "runs another scenario"):
        Hello.unpack(bytes(data), RUN, hello.ends.receiver)


payloads = st.binary(max_size=2 * LARGEST_PAYLOAD) | st.binary(min_size=LARGEST_PAYLOAD, max_size=LARGEST_PAYLOAD)


@settings(max_examples=100)
@given(st.lists(payloads, min_size=50, max_size=50))
def test_noise_is_refused(noise):
    size = len(Welcome(Standing(b"process."), fresh_key()).pack())
    for data in noise:
        with pytest.raises(PeerError):
            Hello.unpack(data, RUN, 0)
        if len(data) != size:
            with pytest.raises(PeerError, match="no welcome"):
                Welcome.unpack(data)
