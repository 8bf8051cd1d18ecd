"""Datagrams: what is sent comes back; whatever else comes is lost, and says nothing."""

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given, settings
from hypothesis import strategies as st

from dlion_sim.bounded_loss.cutting import PAYLOAD
from dlion_sim.live.datagrams import ORIGIN_BYTES, Feedback, Key, Observed, Packet, Sort, origin
from dlion_sim.protocol.messages import Channel

KEY = b"k" * 32
numbers = st.integers(0, 2**32 - 1)
seconds = st.floats(0, 1e9)
packets = st.builds(Packet, st.sampled_from(Channel), numbers, numbers, numbers, numbers, seconds)
feedback = st.builds(Feedback, st.sampled_from(Channel), *[numbers] * 5, seconds)
payloads = st.lists(st.binary(max_size=PAYLOAD // 2), max_size=2)


@given(packets, payloads)
def test_packets_come_back(packet, payload):
    key = Key(Sort.PACKET, KEY)
    data = key.seal(packet.header(), payload)
    assert len(data) == 32 + 16 + sum(map(len, payload))
    assert data[:ORIGIN_BYTES] == origin(Sort.PACKET, Channel(packet.channel), packet.sender)
    assert key.opened(memoryview(data)) == b"".join(payload)
    assert Packet.parse(data) == packet


@given(feedback)
def test_feedback_comes_back(told):
    key = Key(Sort.FEEDBACK, KEY)
    data = key.seal(told.header())
    assert data[:ORIGIN_BYTES] == origin(Sort.FEEDBACK, Channel(told.channel), told.sender)
    assert key.opened(memoryview(data)) == b""
    assert Feedback.parse(data) == told


@given(packets, st.binary(max_size=PAYLOAD))
def test_a_packet_is_a_header_and_what_aes_gcm_makes_of_the_payload(packet, payload):
    header = packet.header()
    sealed = Key(Sort.PACKET, KEY).seal(header, (payload,))
    assert sealed == header + AESGCM(KEY).encrypt(header[12:24], payload, header)


@given(packets, numbers)
def test_no_nonce_is_used_twice(packet, another):
    """A resent packet has a send number of its own."""
    packet = packet._replace(number=min(packet.number, 2**32 - 2))
    key = Key(Sort.PACKET, KEY)
    key.seal(packet.header(), (b"entries",))
    with pytest.raises(RuntimeError, match="nonce"):
        key.seal(packet._replace(packet=another).header(), (b"others",))
    key.seal(packet._replace(number=packet.number + 1).header(), (b"others",))
    with pytest.raises(RuntimeError, match="nonce"):
        key.seal(packet.header(), (b"entries",))


@settings(max_examples=100)
@given(packets, payloads, st.data())
def test_nothing_about_a_packet_can_change(packet, payload, data):
    key = Key(Sort.PACKET, KEY)
    damaged = bytearray(key.seal(packet.header(), payload))
    match data.draw(st.sampled_from(["bit", "cut", "more"])):
        case "bit":
            bit = data.draw(st.integers(0, 8 * len(damaged) - 1))
            damaged[bit // 8] ^= 1 << bit % 8
        case "cut":
            del damaged[data.draw(st.integers(0, len(damaged) - 1)) :]
        case "more":
            damaged += data.draw(st.binary(min_size=1, max_size=1000))
    assert key.opened(memoryview(damaged)) is None


@given(st.sampled_from(Sort), st.binary(max_size=2000))
def test_noise_is_refused(sort, noise):
    assert Key(sort, KEY).opened(memoryview(noise)) is None


@given(packets)
def test_what_another_key_has_sealed_is_refused(packet):
    data = Key(Sort.PACKET, b"a" * 32).seal(packet.header(), (b"entries",))
    assert Key(Sort.PACKET, KEY).opened(memoryview(data)) is None


@given(st.lists(st.integers(0, 200)))
def test_each_number_is_new_once(sent):
    seen, known = Observed(), set()
    for number in sent:
        assert seen.add(number) == (number not in known)
        known.add(number)


@given(st.lists(st.integers(0, 2**32 - 1)))
def test_no_number_is_new_twice_however_far_they_are_apart(sent):
    seen = Observed()
    new = [number for number in (*sent, *sent) if seen.add(number)]
    assert len(new) == len(set(new))
    assert not sent or max(sent) in new
