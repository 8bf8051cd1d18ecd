"""What ping and iperf3 say of an emulated network."""

from __future__ import annotations

import json
import math
import re
import shutil
import statistics
import subprocess

from dlion_sim.emulation.network import Network

_PINGS, _PING_SECONDS, _PING_DEADLINE = 7, 0.2, 10
_PORT = 5201
_OMITTED_SECONDS = 1


def has_iperf3() -> bool:
    """Whether it is installed."""
    return shutil.which("iperf3") is not None


def ping(network: Network, sender: int, receiver: int) -> float:
    """The median round trip between two participants' hosts, in seconds; infinite without an answer."""
    address = network.address(receiver)
    command = f"ping -n -c {_PINGS} -i {_PING_SECONDS} -w {_PING_DEADLINE} {address}"
    return median_round_trip(network.host(sender).pexec(command)[0])


def median_round_trip(said: str) -> float:
    """Of what ping says, in seconds; infinite without an answer."""
    found = [float(time) / 1000 for time in re.findall(r"time=([\d.]+) ms", said)]
    return statistics.median(found) if found else math.inf


def iperf3(network: Network, sender: int, receiver: int, seconds: float, warm_up: float) -> float:
    """The bits per second that TCP delivers from one participant's host to another's; 0 where none arrive."""
    server = network.host(receiver).popen(f"iperf3 -s -1 -p {_PORT} --forceflush", stderr=subprocess.STDOUT)
    try:
        # It says so once it listens.
        while (line := server.stdout.readline()) and b"listening" not in line:
            pass
        lasting = f"-t {math.ceil(seconds)} -O {max(_OMITTED_SECONDS, math.ceil(warm_up))}"
        client = f"iperf3 -c {network.address(receiver)} -p {_PORT} {lasting} -J"
        return delivered(network.host(sender).pexec(client)[0])
    finally:
        server.kill()
        server.communicate()


def delivered(said: str) -> float:
    """Of what iperf3 says as JSON, in bits per second; 0 where it says what went wrong."""
    received = json.loads(said).get("end", {}).get("sum_received", {})
    return float(received.get("bits_per_second", 0.0))
