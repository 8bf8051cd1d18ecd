"""Frames: what is sent comes back; nothing else is ever accepted, and nothing is allocated for it."""

import tracemalloc
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlion_sim.live.frames import HEAD_BYTES, Kind, Payload, PeerError, Seal, head, parse_head

KEY = b"k" * 32
LIMIT = 1000
payloads = st.lists(st.binary(max_size=100), max_size=5).map(lambda buffers: Payload(tuple(buffers)))


def frame(kind: Kind, payload: Payload, seal: Seal) -> tuple[bytes, bytes]:
    return head(kind, payload, seal), b"".join(payload.buffers)


def accept(start: bytes, body: bytes, seal: Seal, limit: int = LIMIT) -> tuple[Kind, bytes]:
    announced = parse_head(start, seal, limit)
    announced.check(body)
    return announced.kind, body


@given(st.lists(st.tuples(st.sampled_from(Kind), payloads), max_size=10))
def test_frames_come_back_in_order(frames):
    ours, theirs = Seal(KEY), Seal(KEY)
    for kind, payload in frames:
        assert accept(*frame(kind, payload, ours), theirs) == (kind, b"".join(payload.buffers))


@settings(max_examples=100)
@given(st.lists(st.binary(min_size=HEAD_BYTES, max_size=HEAD_BYTES), min_size=50, max_size=50))
def test_noise_is_refused(noise):
    for data in noise:
        with pytest.raises(PeerError):
            parse_head(data, Seal(KEY), LIMIT)
        with pytest.raises(PeerError):
            parse_head(data, Seal(), LIMIT)


@given(payloads, st.data())
def test_no_bit_can_change(payload, data):
    start, body = frame(Kind.MESSAGE, payload, Seal(KEY))
    damaged = bytearray(start + body)
    bit = data.draw(st.integers(0, 8 * len(damaged) - 1))
    damaged[bit // 8] ^= 1 << bit % 8
    with pytest.raises(PeerError):
        accept(bytes(damaged[:HEAD_BYTES]), bytes(damaged[HEAD_BYTES:]), Seal(KEY))


@given(payloads, st.integers(1, 100))
def test_a_truncated_payload_is_refused(payload, missing):
    start, body = frame(Kind.MESSAGE, payload, Seal(KEY))
    if body:
        with pytest.raises(PeerError):
            accept(start, body[:-missing], Seal(KEY))


def test_a_frame_is_good_once_and_in_its_place_only():
    ours = Seal(KEY)
    first, second = (frame(Kind.MESSAGE, Payload((text,)), ours) for text in (b"first", b"second"))
    theirs = Seal(KEY)
    accept(*first, theirs)
    with pytest.raises(PeerError, match="out of order"):
        accept(*first, theirs)
    with pytest.raises(PeerError, match="out of order"):
        accept(*second, Seal(KEY))


def test_a_frame_of_another_connection_is_refused():
    with pytest.raises(PeerError, match="not its own"):
        accept(*frame(Kind.MESSAGE, Payload((b"text",)), Seal(b"another key")), Seal(KEY))


def test_what_is_too_long_is_refused_before_anything_is_allocated():
    start = head(Kind.MESSAGE, SimpleNamespace(length=2**32 - 1, crc=0), Seal(KEY))
    tracemalloc.start()
    with pytest.raises(PeerError, match="announced 4294967295 bytes, where 1000 are the most"):
        parse_head(start, Seal(KEY), LIMIT)
    assert tracemalloc.get_traced_memory()[1] < 10_000
    tracemalloc.stop()


def test_an_unknown_kind_is_refused():
    with pytest.raises(PeerError, match="unknown kind 99"):
        parse_head(head(99, Payload(), Seal(KEY)), Seal(KEY), LIMIT)
