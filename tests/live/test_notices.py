"""Notices between nodes: what is sent comes back; anything else is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlion_sim.live.frames import PeerError
from dlion_sim.live.notices import Bitmap, Probe, Start, Stop, bits, packets_in, parse
from dlion_sim.protocol.messages import Channel

numbers, channels = st.integers(0, 2**32 - 1), st.sampled_from(Channel)
notices = (
    st.builds(Start, channels, numbers, st.binary())
    | st.builds(Probe, channels, numbers, numbers)
    | st.builds(Bitmap, channels, numbers, st.binary())
    | st.builds(Stop, channels, numbers, st.binary(), st.floats(0, 1e9))
)


@given(notices)
def test_notices_come_back(notice):
    assert parse(b"".join(notice.payload().buffers)) == notice


@given(st.binary(max_size=50))
def test_noise_is_refused_or_a_notice(noise):
    try:
        notice = parse(noise)
    except PeerError:
        return
    assert isinstance(notice.channel, Channel)


@given(st.lists(st.integers(0, 1), min_size=1, max_size=100))
def test_the_packets_that_are_there_come_back(have):
    packed = bits(np.array(have, np.uint8))
    assert packets_in(packed, len(have)).tolist() == have
    with pytest.raises(PeerError, match="which packets"):
        packets_in(packed + b"0", len(have))
