"""What the pace of acknowledgements tells of a link."""

import asyncio
import socket
import time

import pytest

from dlion_sim.live.frames import PeerError
from dlion_sim.live.link_timing import Acknowledged, Meter, acknowledgements_a_frame
from dlion_sim.scenario.network import SEGMENT

SIZE, SIP = 400_000, 4_000


async def delivered(drink_every: float | None, *, extra: int = 0, timeout: float = 60.0) -> tuple[float, float]:
    """The seconds that a message takes, and those that its reader took, who takes a sip every so often.

    Of all that is sent, `extra` bytes are no part of the message.
    """
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as sender:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SIP)
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * SIZE)
        sender.connect(server.getsockname())
        reader, _ = server.accept()
        with reader:
            for each in (sender, reader):
                each.setblocking(False)

            async def drink() -> float:
                left, began = SIZE, time.monotonic()
                while left := left - len(await loop.sock_recv(reader, SIP)):
                    await asyncio.sleep(drink_every)
                return time.monotonic() - began

            meter = Meter(sender)
            delivery = meter.begin(SIZE - extra, extra)
            drinking = asyncio.create_task(drink()) if drink_every is not None else None
            # This machine's buffers take it whole at once, which tells nothing.
            assert sender.send(bytes(SIZE)) == SIZE
            seconds = await meter.seconds(delivery, timeout=timeout)
            return seconds, await drinking if drinking else 0.0


@pytest.mark.parametrize("size", [SIZE, 1000], ids=["long", "short"])
def test_a_message_takes_as_long_as_its_link_whatever_the_buffers_here_hold(size):
    """A short one takes its part of the time that it takes with a probe."""
    seconds, drinking = asyncio.run(delivered(0.005, extra=SIZE - size))
    assert seconds > 0.5 * drinking * size / SIZE


def test_a_link_that_takes_nothing_is_given_up():
    with pytest.raises(PeerError, match="took nothing"):
        asyncio.run(delivered(None, timeout=0.1))


class VirtualClock:
    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch) -> VirtualClock:
    """What a meter goes by."""
    made = VirtualClock()
    for module in ("time", "asyncio"):
        monkeypatch.setattr(f"dlion_sim.live.link_timing.{module}", made)
    return made


class AckedLate(Meter):
    """Of a link of a steady rate, whose acknowledgements come late, but are said to come at once."""

    def __init__(self, clock: VirtualClock, rate: float, late: float) -> None:
        self._clock, self._rate, self._late = clock, rate, late
        self._position = 0
        self._all_delivered = 0.0

    def _acknowledged(self) -> Acknowledged:
        size = int(self._rate * max(0.0, self._clock.now - self._late))
        return Acknowledged(size, at=self._clock.now, round_trip=0.0)


def test_how_late_acknowledgements_come_does_not_matter(clock):
    meter = AckedLate(clock, rate=1e6, late=0.4)

    async def measured() -> list[float]:
        return [await meter.seconds(delivery, timeout=1.0) for delivery in (meter.begin(SIZE), meter.begin(SIZE))]

    assert asyncio.run(measured()) == pytest.approx([SIZE / 1e6, SIZE / 1e6], rel=0.02)


def test_how_late_it_is_looked_at_does_not_matter(clock):
    """A busy machine looks again when all has long come through; TCP knows when that was."""
    meter = AckedLate(clock, rate=1e6, late=0.0)

    async def measured() -> float:
        delivery = meter.begin(SIZE)
        meter._acknowledged = lambda: Acknowledged(SIZE, at=delivery.began + SIZE / 1e6, round_trip=0.0)
        await clock.sleep(2 * SIZE / 1e6)
        return await meter.seconds(delivery, timeout=1.0)

    assert asyncio.run(measured()) == pytest.approx(SIZE / 1e6)


async def test_the_kernel_tells_when_the_last_acknowledgement_came():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as sender:
        sender.connect(server.getsockname())
        reader, _ = server.accept()
        with reader:
            meter = Meter(sender)
            delivery = meter.begin(1000)
            sender.send(bytes(1000))
            reader.recv(1000)
            came = time.monotonic()
            await asyncio.sleep(0.5)
            found = [meter._acknowledged() for _ in range(20)]
            assert {each.size for each in found} == {delivery.position + 1000}
            assert delivery.began - 0.1 < min(each.at for each in found) < came + 0.3


async def test_acknowledgements_are_counted_for_each_full_frame():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as sender:
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, SEGMENT + 12)  # without timestamps
        sender.connect(server.getsockname())
        reader, _ = server.accept()
        with reader:
            for _ in range(2000):
                sender.sendall(bytes(SEGMENT))
                reader.recv(SEGMENT, socket.MSG_WAITALL)
            found = acknowledgements_a_frame(sender)
            assert 0.2 < found <= 1.1
            # Those that come with data are none.
            for _ in range(2000):
                reader.sendall(b"x")
                sender.recv(1)
                sender.sendall(bytes(SEGMENT))
                reader.recv(SEGMENT, socket.MSG_WAITALL)
            assert acknowledgements_a_frame(sender) < 0.6 * found
