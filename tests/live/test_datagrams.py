"""Datagrams: what is sent comes back; whatever else comes is lost, and says nothing."""

import hashlib

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


def whole(key: Key, header: bytes, payload=()) -> bytes:
    return key.seal(header, payload) + b"".join(payload)


@given(packets, payloads)
def test_packets_come_back(packet, payload):
    key = Key(Sort.PACKET, KEY)
    data = whole(key, packet.header(), payload)
    assert len(data) == 32 + 16 + sum(map(len, payload))
    assert data[:ORIGIN_BYTES] == origin(Sort.PACKET, Channel(packet.channel), packet.sender)
    assert key.opened(memoryview(data)) == b"".join(payload)
    assert Packet.parse(data) == packet


@given(feedback)
def test_feedback_comes_back(told):
    key = Key(Sort.FEEDBACK, KEY)
    data = whole(key, told.header())
    assert data[:ORIGIN_BYTES] == origin(Sort.FEEDBACK, Channel(told.channel), told.sender)
    assert key.opened(memoryview(data)) == b""
    assert Feedback.parse(data) == told


@given(packets, st.binary(max_size=PAYLOAD))
def test_the_tag_is_keyed_blake2b_of_header_and_payload(packet, payload):
    header = packet.header()
    tag = hashlib.blake2b(header + payload, key=KEY, digest_size=16).digest()
    assert Key(Sort.PACKET, KEY).seal(header, (payload,)) == header + tag


@settings(max_examples=100)
@given(packets, payloads, st.data())
def test_nothing_about_a_packet_can_change(packet, payload, data):
    key = Key(Sort.PACKET, KEY)
    damaged = bytearray(whole(key, packet.header(), payload))
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
    data = whole(Key(Sort.PACKET, b"another key"), packet.header(), (b"entries",))
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
