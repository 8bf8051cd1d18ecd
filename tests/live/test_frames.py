"""Frames: what is sent comes back; nothing invalid is accepted, and nothing is allocated for it."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlion_sim.live.frames import HEAD_BYTES, Kind, Payload, PeerError, head, parse_head

LIMIT = 1000


@given(st.sampled_from(Kind), st.integers(0, LIMIT))
def test_heads_come_back(kind, length):
    data = head(kind, length)
    assert len(data) == HEAD_BYTES
    assert parse_head(data, LIMIT) == (kind, length)


@given(st.lists(st.binary(max_size=100), max_size=5))
def test_a_payload_is_as_long_as_its_buffers(buffers):
    assert Payload(tuple(buffers)).length == len(b"".join(buffers))


def test_what_is_too_long_is_refused_before_anything_is_allocated():
    data = head(Kind.MESSAGE, 2**32 - 1)
    tracemalloc.start()
    with pytest.raises(PeerError, match="announced 4294967295 bytes, where 1000 are the most"):
        parse_head(data, LIMIT)
    assert tracemalloc.get_traced_memory()[1] < 10_000
    tracemalloc.stop()


@pytest.mark.parametrize("kind", [0, 10, 255])
def test_an_unknown_kind_is_refused(kind):
    with pytest.raises(PeerError, match=f"unknown kind {kind}"):
        parse_head(head(kind, 0), LIMIT)
