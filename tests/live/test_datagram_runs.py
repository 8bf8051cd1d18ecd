"""Whole live runs whose messages may lose a part, over sockets that lose datagrams, and under attack."""

import asyncio
import random

import pytest

from dlion_sim.errors import InputError
from dlion_sim.live.datagram_socket import DatagramSocket
from dlion_sim.live.gathering import gather
from dlion_sim.simulation import simulate
from tests.live.attacks import Forger
from tests.live.test_driver import brief, kill, losses
from tests.live.together import Together

SELDOM = "workload.evaluate_every=60 s"


@pytest.fixture
def lossy(monkeypatch):
    """A tenth of all datagrams is lost, at random."""
    send, rng = DatagramSocket.send, random.Random(1)
    monkeypatch.setattr(
        DatagramSocket,
        "send",
        lambda self, datagram, tos, address: rng.random() < 0.1 or send(self, datagram, tos, address),
    )


@pytest.mark.usefixtures("lossy")
@pytest.mark.parametrize(
    "system",
    [
        "baseline",
        "gaia",
        "dpsgd",
        "ring_allreduce",
        {"name": "local_sgd", "exchange": {"period": 3}},
        "parameter_server",
    ],
    ids=str,
)
def test_without_a_bound_a_run_learns_what_it_does_reliably_to_the_bit(tmp_path, system):
    reliable = simulate(brief("iterations=6", SELDOM, system=system), tmp_path / "reliable", device="cpu")
    scenario = brief("iterations=6", SELDOM, system=system, transport={"kind": "dlcp", "loss_bound": 0})
    for outcome in Together(scenario, tmp_path / "parts").run():
        assert (outcome.ending.stopped_by, outcome.lost, outcome.datagrams.refused) == ("iterations", {}, 0)
    live = gather(tmp_path / "parts", tmp_path / "live")
    assert losses(live).equals(losses(reliable))
    transfers = live.transfers()
    assert (transfers["lost_bytes"].dropna() == 0).all()
    assert transfers["resent_bytes"].sum() > 0


@pytest.mark.usefixtures("lossy")
@pytest.mark.parametrize("fill", ["zero", "stale"])
def test_within_its_bound_a_run_loses_some_and_ends(tmp_path, fill):
    transport = {"kind": "dlcp", "loss_bound": 0.1, "fill": fill}
    scenario = brief("iterations=8", SELDOM, system="baseline", transport=transport)
    for outcome in Together(scenario, tmp_path / "parts").run():
        assert (outcome.ending.stopped_by, outcome.lost) == ("iterations", {})
    transfers = gather(tmp_path / "parts", tmp_path / "run").transfers().dropna(subset=["lost_bytes"])
    assert len(transfers) >= 40
    assert transfers["lost_bytes"].sum() > 0
    assert (transfers["lost_bytes"] <= 0.1 * transfers["bytes"].max()).all()


def test_ten_thousand_hostile_datagrams_leave_a_run_as_it_is(tmp_path, monkeypatch):
    scenario = brief("iterations=20", SELDOM, system="baseline", transport={"kind": "dlcp", "loss_bound": 0})
    alone = Together(scenario, tmp_path / "alone")
    alone.run()
    forger = Forger(monkeypatch)

    async def attack(together):
        while forger.sent < 10_000 and not all(task.done() for task in together.tasks):
            forger.send(100)
            await asyncio.sleep(0)

    attacked = Together(scenario, tmp_path / "attacked")
    outcomes = attacked.run(attack)
    assert forger.sent >= 10_000
    for one, other, outcome in zip(alone.members, attacked.members, outcomes, strict=True):
        assert one.participant.replica.parameters.equal(other.participant.replica.parameters)
        assert (outcome.ending.stopped_by, outcome.lost) == ("iterations", {})
    assert max(outcome.datagrams.refused for outcome in outcomes) > 0.5 * forger.sent


def test_a_lost_peer_is_lost_as_over_tcp(tmp_path):
    system = {"name": "baseline", "synchronization": "asynchronous"}
    together = Together(brief("duration=1.5 s", system=system, transport="dlcp"), tmp_path)
    for outcome in together.run(kill(2))[:2]:
        assert (outcome.ending.status, outcome.ending.stopped_by) == ("completed", "duration")
        assert list(outcome.lost) == [2]
    assert together.members[0].participant.iteration > 5


def test_a_run_of_a_duration_ends_at_that_time_with_messages_under_way(tmp_path):
    scenario = brief("duration=0.7 s", system="ako", transport="dlcp")
    for outcome in Together(scenario, tmp_path / "parts").run():
        assert (outcome.ending.stopped_by, outcome.ending.seconds, outcome.lost) == ("duration", 0.7, {})
    run = gather(tmp_path / "parts", tmp_path / "run")
    assert run.links()["bytes"].sum() == run.transfers()["bytes"].sum()


def test_pfabric_is_refused(tmp_path):
    with pytest.raises(InputError, match="pfabric"):
        Together(brief("iterations=1", system="baseline", transport="pfabric"), tmp_path).run()
