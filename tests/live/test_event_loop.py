"""The event loop of nodes."""

import asyncio
import os
import select

from dlion_sim.live import event_loop


def test_a_timer_waits_no_longer_than_it_is_told_to(monkeypatch):
    """`epoll` by itself would wait until the next whole millisecond."""
    waited, whole = [], select.select

    def noted(readers, writers, others, timeout):
        waited.append(timeout)
        return whole(readers, writers, others, timeout)

    monkeypatch.setattr(select, "select", noted)
    event_loop.run(asyncio.sleep(0.0123))
    assert 0 < max(waited) <= 0.0124


def test_what_is_ready_ends_the_wait():
    async def read():
        near, far = os.pipe()
        loop, ready = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(near, ready.set)
        loop.call_later(0.01, os.write, far, b"x")
        async with asyncio.timeout(60):
            await ready.wait()
        loop.remove_reader(near)
        os.close(near), os.close(far)
        return ready.is_set()

    assert event_loop.run(read())
