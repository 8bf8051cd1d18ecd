"""A whole run, one of whose nodes is under attack by those who connect to it."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

from dlion_sim.live.gathering import gather
from dlion_sim.live.rendezvous import Rendezvous
from dlion_sim.simulation import simulate
from tests.live.attacks import Strangers
from tests.live.test_driver import brief, losses
from tests.live.together import QUICK, Together

SELDOM = "workload.evaluate_every=60 s"
COUNTS = {
    "plain": 1540,
    "an_older_tls": 600,
    "another_ca": 300,
    "an_expired_certificate": 250,
    "nonsense": 250,
    "slowness": 60,
}


def sockets() -> int:
    """The number of sockets of this process, which writes files meanwhile."""
    return sum(file.is_socket() for file in Path("/proc/self/fd").iterdir())


def test_three_thousand_hostile_connections_leave_a_run_as_it_is(tmp_path, monkeypatch):
    reasons: Counter[str] = Counter()
    monkeypatch.setattr(Rendezvous, "_refuse", lambda _, reason: reasons.update([reason]))

    async def attack(together):
        before = sockets()
        await Strangers(together.addresses[0]).come(COUNTS)
        await together.until(lambda: reasons.total() == sum(COUNTS.values()))
        await together.until(lambda: sockets() <= before)
        for driver in together.drivers.values():
            driver.interrupt()

    scenario = brief("duration=600 s", SELDOM, system="baseline", availability={})
    attacked = Together(scenario, tmp_path / "parts", timeouts=replace(QUICK, handshake=3.0))
    for outcome in attacked.run(attack):
        assert (outcome.ending.status, outcome.lost) == ("interrupted", {})
    assert reasons["has no certificate of the run: certificate has expired"] == COUNTS["an_expired_certificate"]
    assert reasons["speaks no TLS of this run (unsupported protocol)"] >= COUNTS["an_older_tls"]
    assert reasons["took too long to prove who it is"] == COUNTS["slowness"]
    live = losses(gather(tmp_path / "parts", tmp_path / "run"))
    done = min(member.participant.iteration for member in attacked.members)
    assert done > 100
    alone = losses(simulate(brief(f"iterations={done}", SELDOM, system="baseline"), tmp_path / "alone", device="cpu"))
    assert live.loc[alone.index].equals(alone)
