"""What is told of a message in datagrams comes back, and nothing else is taken for it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlion_sim.live.frames import PeerError
from dlion_sim.live.notices import Notice, count_in, end_in, of_count, of_end, of_packets, packets_in
from dlion_sim.protocol.messages import Channel


@given(st.sampled_from(Channel), st.integers(0, 2**32 - 1), st.binary(max_size=100))
def test_notices_come_back(channel, number, rest):
    notice = Notice(channel, number, rest)
    assert Notice.parse(memoryview(b"".join(notice.payload().buffers))) == notice


@pytest.mark.parametrize("payload", [b"", b"1234567", b"\3" + bytes(7)], ids=["none", "short", "unknown channel"])
def test_what_names_no_message_is_refused(payload):
    with pytest.raises(PeerError, match="of no message"):
        Notice.parse(memoryview(payload))


@given(st.lists(st.booleans(), min_size=1, max_size=100))
def test_the_packets_that_are_there_come_back(have):
    rest = of_packets(np.array(have, np.uint8))
    assert len(rest) == -(-len(have) // 8)
    assert packets_in(rest, len(have)).tolist() == have
    for wrong in (rest[:-1], rest + b"\0"):
        with pytest.raises(PeerError):
            packets_in(wrong, len(have))


@given(st.integers(0, 2**32 - 1))
def test_counts_come_back(count):
    assert count_in(of_count(count)) == count
    for wrong in (b"", bytes(3), bytes(5)):
        with pytest.raises(PeerError):
            count_in(wrong)


@given(st.lists(st.booleans(), min_size=1, max_size=100), st.floats(0, 1e9))
def test_the_end_comes_back(have, pace):
    there, told = end_in(of_end(np.array(have, np.uint8), pace), len(have))
    assert (there.tolist(), told) == (have, pace)


@pytest.mark.parametrize("pace", [-1.0, float("nan"), float("inf")])
def test_packets_come_at_some_pace(pace):
    with pytest.raises(PeerError, match="how fast"):
        end_in(of_end(np.ones(3, np.uint8), pace), 3)


@pytest.mark.parametrize("rest", [b"", bytes(8), bytes(10)], ids=len)
def test_an_end_names_all_packets(rest):
    with pytest.raises(PeerError, match="which packets"):
        end_in(rest, 3)
