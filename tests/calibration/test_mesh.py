"""Nodes that measure the paths between them, over loopback: found by all, and by nobody else."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import permutations

import pytest

from dlion_sim.calibration import mesh, probe
from dlion_sim.calibration.mesh import Outcome, take_part
from dlion_sim.calibration.probe import PathFound
from dlion_sim.errors import InputError
from dlion_sim.live import MeshConfig, Timeouts
from dlion_sim.live.connection import connected
from dlion_sim.live.frames import Kind, head
from tests.live.mesh import SECRET, identity_of, listeners, until

QUICK = Timeouts(start=60, handshake=20, silence=60)


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "_WARM_UP_SECONDS", 0.05)
    monkeypatch.setattr(probe, "_WARM_UP_ROUND_TRIPS", 0)
    monkeypatch.setattr(probe, "_PINGS", 10)


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When node 0 has begun."""
    times: list[float] = []
    begin = mesh.Prober.begin

    def noted(prober: mesh.Prober, now: float):
        times.append(now)
        return begin(prober, now)

    monkeypatch.setattr(mesh.Prober, "begin", noted)
    return times


def configs(count: int, *, timeouts: Timeouts = QUICK, secrets=None, delays=None) -> list[MeshConfig]:
    sockets, addresses = listeners(count)
    return [
        MeshConfig(
            rank,
            addresses,
            identity_of(rank, (secrets or {}).get(rank, SECRET)),
            listen=listener,
            timeouts=timeouts,
            delays=(delays or {}).get(rank, ()),
        )
        for rank, listener in enumerate(sockets)
    ]


def measured(nodes, **options) -> list[Outcome | BaseException]:
    async def all_of_them():
        parts = (take_part(config, seconds=0.05, **options) for config in nodes)
        return await asyncio.gather(*parts, return_exceptions=True)

    return asyncio.run(all_of_them())


@pytest.mark.parametrize("together", [False, True])
def test_all_paths_are_measured(together: bool) -> None:
    told: dict[tuple[int, int], PathFound] = {}
    outcome, *others = measured(configs(3), together=together, observe=told.__setitem__)
    assert others == [Outcome(), Outcome()]
    assert outcome == Outcome(told)
    assert set(told) == set(permutations(range(3), 2))
    for path in told.values():
        assert path.bps > 10e6
        assert 0 < path.round_trip <= path.median_round_trip < 60
        assert 0 < path.acknowledgements <= 1


def test_what_comes_is_held_back_for_the_delays() -> None:
    outcome, _ = measured(configs(2, delays={0: [0, 0.08], 1: [0.04, 0]}))
    for path in outcome.paths.values():
        assert 0.12 <= path.round_trip < 0.24


def test_who_does_not_know_the_secret_is_never_there() -> None:
    first, second = measured(configs(2, timeouts=Timeouts(start=0.7, handshake=0.3), secrets={1: b"another secret.."}))
    for outcome, other in ((first, 1), (second, 0)):
        assert isinstance(outcome, InputError)
        assert f"could not start within 0.7 s: node {other} at 127.0.0.1:" in str(outcome)


def test_who_measures_for_another_time_is_refused() -> None:
    nodes = configs(2, timeouts=Timeouts(start=0.7, handshake=0.3))

    async def apart():
        parts = (take_part(config, seconds=seconds) for config, seconds in zip(nodes, (1.0, 2.0), strict=True))
        return await asyncio.gather(*parts, return_exceptions=True)

    assert all("could not start" in str(outcome) for outcome in asyncio.run(apart()))


def test_strangers_disturb_nothing() -> None:
    nodes = configs(2)

    async def disturbed():
        stranger = await connected(nodes[0].addresses[0])
        await asyncio.get_running_loop().sock_sendall(stranger, head(Kind.MESSAGE, 100) + bytes(100))
        try:
            return await asyncio.gather(*(take_part(config, seconds=0.05) for config in nodes))
        finally:
            stranger.close()

    outcome, other = asyncio.run(disturbed())
    assert len(outcome.paths) == 2
    assert other == Outcome()


def test_a_lost_node_ends_it_and_is_named(begun: list[float]) -> None:
    nodes = configs(3)

    async def one_leaves():
        parts = [asyncio.create_task(take_part(config, seconds=60.0)) for config in nodes]
        await until(lambda: begun)
        parts[2].cancel()
        await asyncio.wait(parts[2:])
        return await asyncio.gather(*parts[:2])

    for outcome in asyncio.run(one_leaves()):
        assert outcome.failed == "node 2 was lost: it closed the connection"
        assert not outcome.paths


def test_an_interrupt_ends_it(begun: list[float]) -> None:
    nodes = configs(2)
    ends = []

    async def interrupted():
        parts = [asyncio.create_task(take_part(config, seconds=60.0, watched=ends.append)) for config in nodes]
        await until(lambda: begun)
        ends[0]()
        return await asyncio.gather(*parts)

    outcome, other = asyncio.run(interrupted())
    assert outcome == Outcome(interrupted=True)
    assert other.failed == "node 0 was lost: it closed the connection"


def test_who_is_there_but_measures_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mesh, "_PATIENCE", 0)
    nodes = configs(2, timeouts=Timeouts(start=20, handshake=1, silence=0.6))
    monkeypatch.setattr(mesh.Prober, "arrived", lambda *_: [])
    outcome, _ = measured(nodes)
    assert outcome.failed == "nothing was measured for 0.6 s"


@pytest.mark.parametrize(
    ("changed", "words"),
    [({"rank": 2}, "`rank`: there is no participant 2"), ({"delays": [0.1]}, "`delays`: 1 delays")],
)
def test_what_fits_no_mesh_is_refused(changed: dict, words: str) -> None:
    first, second = configs(2)
    second.listener().close()
    with first.listener(), pytest.raises(InputError, match=words):
        asyncio.run(take_part(replace(first, **changed), seconds=1.0))
