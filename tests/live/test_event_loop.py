"""The event loop of nodes."""

import asyncio
import select

import pytest

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


def test_an_error_of_a_callback_ends_it():
    ended = []

    async def waits():
        asyncio.get_running_loop().call_soon([].pop)
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("in an orderly way")

    with pytest.raises(IndexError, match="pop from empty list"):
        event_loop.run(waits())
    assert ended
