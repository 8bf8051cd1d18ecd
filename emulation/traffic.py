"""TCP between hosts of an emulated network."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from dlion_sim.emulation.network import Network

WARM_UP_SECONDS = 0.5
_SINK = """
import socket, sys, threading, time
listener = socket.create_server(("", int(sys.argv[1])))
print("ready", flush=True)
connection, _ = listener.accept()
received, buffer = 0, bytearray(1 << 16)
def receive():
    global received
    while count := connection.recv_into(buffer):
        received += count
threading.Thread(target=receive, daemon=True).start()
for _ in sys.stdin:
    print(time.monotonic(), received, flush=True)
"""
_SOURCE = """
import socket, sys
connection = socket.create_connection((sys.argv[1], int(sys.argv[2])))
connection.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, int(sys.argv[3]))
while True:
    connection.sendall(bytes(1 << 16))
"""
_ECHO = """
import socket
listener = socket.create_server(("", 6000))
print("ready", flush=True)
connection, _ = listener.accept()
connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
while data := connection.recv(100):
    connection.sendall(data)
"""
_CALL = """
import socket, sys, time
connection = socket.create_connection((sys.argv[1], 6000))
connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
for _ in range(20):
    began = time.monotonic()
    connection.sendall(b"x" * 60)
    connection.recv(100)
    print(time.monotonic() - began)
    time.sleep(0.03)
"""


class Flow:
    """A TCP connection that sends as much as it can, in packets of that mark."""

    def __init__(
        self, network: Network, sender: int, receiver: int, mark: int = 0, *, port: int, stack: ExitStack
    ) -> None:
        self._sink = _start(stack, network, receiver, _SINK, port)
        _until_ready(self._sink)
        _start(stack, network, sender, _SOURCE, network.address(receiver), port, mark)

    def received(self) -> tuple[float, int]:
        """Now, and the bytes that have come by now."""
        assert self._sink.stdin
        assert self._sink.stdout
        self._sink.stdin.write(b"\n")
        self._sink.stdin.flush()
        at, count = self._sink.stdout.readline().split()
        return float(at), int(count)


@contextmanager
def flows(
    network: Network, *each: tuple[int, ...], warm_up: float = WARM_UP_SECONDS
) -> Iterator[Callable[..., list[float]]]:
    """Flows of (sender, receiver), or with a mark: call it with seconds for the payload of each in bits per second."""
    with ExitStack() as stack:
        running = [Flow(network, *one, port=5000 + number, stack=stack) for number, one in enumerate(each)]
        time.sleep(warm_up)
        yield lambda seconds=1.0: _rates(running, seconds)


def round_trip(network: Network, caller: int, called: int) -> float:
    """Median seconds until a short message is answered."""
    with ExitStack() as stack:
        _until_ready(_start(stack, network, called, _ECHO))
        call = _start(stack, network, caller, _CALL, network.address(called))
        assert call.stdout
        return statistics.median(map(float, call.stdout))


def _rates(running: Sequence[Flow], seconds: float) -> list[float]:
    before = [flow.received() for flow in running]
    time.sleep(seconds)
    after = [flow.received() for flow in running]
    return [8 * (then[1] - now[1]) / (then[0] - now[0]) for now, then in zip(before, after, strict=True)]


def _start(
    stack: ExitStack, network: Network, participant: int, program: str, *arguments: object
) -> subprocess.Popen[bytes]:
    """A Python program on a participant's host, which ends with the stack."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    process: subprocess.Popen[bytes] = network.host(participant).popen(command, stdin=subprocess.PIPE)
    stack.callback(process.communicate)
    stack.callback(process.kill)
    return process


def _until_ready(process: subprocess.Popen[bytes]) -> None:
    assert process.stdout
    if process.stdout.readline() != b"ready\n":
        raise RuntimeError("a host listens to nobody")
