"""Whoever has not the key."""

import random
import socket
import struct

from dlion_sim.bounded_loss.cutting import PAYLOAD
from dlion_sim.live.datagram_socket import DatagramSocket
from dlion_sim.live.datagrams import Key, Packet, Sort
from dlion_sim.protocol.messages import Channel


class Forger:
    """A stranger who sees what goes to one node, and sends it more of that kind."""

    def __init__(self, monkeypatch) -> None:
        self.rng = random.Random(1)
        self.seen: list[bytes] = []
        self.sent = 0
        self._victim = None
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        send = DatagramSocket.send

        def overheard(datagrams, data, tos, address):
            self._victim = self._victim or address
            if address == self._victim:
                self.seen.append(data)
            return send(datagrams, data, tos, address)

        monkeypatch.setattr(DatagramSocket, "send", overheard)

    def datagram(self) -> bytes:
        rng, real = self.rng, self.rng.choice(self.seen)
        match rng.randrange(8):
            case 0:
                return rng.randbytes(rng.randrange(2000))
            case 1:
                return real[: rng.randrange(len(real))]
            case 2:  # again
                return real
            case 3:
                damaged = bytearray(real)
                bit = rng.randrange(8 * len(real))
                damaged[bit // 8] ^= 1 << bit % 8
                return bytes(damaged)
            case 4:  # a header as it should be, and a tag made up
                return real[:-16] + rng.randbytes(16)
            case 5:  # of another session
                header = Packet(Channel.DATA, 1, rng.randrange(10), rng.randrange(60), rng.randrange(60), 0.0).header()
                return Key(Sort.PACKET, bytes(32)).seal(header, (rng.randbytes(PAYLOAD),))
            case 6:  # longer than any
                return real + rng.randbytes(rng.randrange(60_000))
            case _:  # of a message that nobody has announced
                return real[:12] + struct.pack("<I", rng.randrange(2**32)) + real[16:]

    def send(self, count):
        for _ in range(count if self.seen else 0):
            self._socket.sendto(self.datagram(), self._victim)
            self.sent += 1

    def is_of(self, node) -> bool:
        """Whether that is the victim."""
        return node._datagrams.socket._socket.getsockname() == self._victim
