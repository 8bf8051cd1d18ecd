"""The UDP socket: what is sent comes, with its bits in the IP header, over IPv4 and IPv6; what fails is lost."""

import asyncio
import socket
import time
from contextlib import closing

import pytest

from dlion_sim.errors import InputError
from dlion_sim.live.connection import Address, listen
from dlion_sim.live.datagram_socket import DatagramSocket
from tests.live.mesh import until


def exchange(host, sends):
    """What a socket gets of (datagram, TOS byte), and whether each was marked."""

    async def scenario():
        got = []
        with listen(Address(host, 0)) as one, listen(Address(host, 0)) as other:
            sender, receiver = DatagramSocket(one), DatagramSocket(other)
            with closing(sender), closing(receiver):
                receiver.begin(lambda data, marked, at: got.append((bytes(data), marked, at)), lambda: None)
                for datagram, tos in sends:
                    assert sender.send(datagram, tos, other.getsockname())
                await until(lambda: len(got) == len(sends))
        assert all(0 <= time.time() - at < 10 for _, _, at in got)
        return [(data, marked) for data, marked, _ in got]

    return asyncio.run(scenario())


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_datagrams_come_with_the_mark_of_congested_links(host):
    sends = [(b"", 0), (b"a", 2), (b"b", 3), (b"c", 7 << 2 | 3), (b"d", 7 << 2 | 1)]
    assert exchange(host, sends) == [(b"", False), (b"a", False), (b"b", True), (b"c", True), (b"d", False)]


def test_what_is_longer_than_any_is_cut_off():
    assert exchange("127.0.0.1", [(bytes(60_000), 0)]) == [(bytes(2048), False)]


def test_what_cannot_be_sent_is_lost():
    with listen(Address("127.0.0.1", 0)) as listener:
        datagrams = DatagramSocket(listener)
        assert datagrams.send(bytes(70_000), 0, ("127.0.0.1", 9))  # longer than UDP allows
        assert datagrams.send(b"a", 0, ("240.0.0.1", 9))  # no such network
        datagrams._socket.close()


def test_a_port_that_is_taken_is_told():
    with listen(Address("127.0.0.1", 0)) as listener, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(listener.getsockname())
        with pytest.raises(InputError, match=r"cannot listen there for datagrams: Address already in use") as told:
            DatagramSocket(listener)
        assert str(listener.getsockname()[1]) in str(told.value)
